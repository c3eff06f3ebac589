"""The manifests of all units after each batch, as files: what a task begins with, and what makes its batch count.

    STATES/manifests/00000041/0-3-of-8-by-7      after batch 41: of those units of stage 0 that partition 3 of 8 has,
                                                 as the run of epoch 7 found them

Laws: the files of a batch are made from those of the batch before and its input alone, and written aside and renamed. So
attempts of a run write the same, whoever comes last changes nothing, and a batch that is cut off runs again as if it had
never begun. Where several runs have written one, the latest counts: a task of an older run that comes late changes nothing
either. What a manifest names is on the disk before its own name is, if that matters (`synced`).
Unit u is in partition u mod n: the number of partitions may be another in each batch.
"""

import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import xxhash

from joinlib.errors import WAY_BACK, StateError
from joinlib.files import sync, whole
from joinlib.state.epochs import NONE

_DIGEST = 8  # bytes, in front
_NAME = re.compile(r"(\d+)-(\d+)-of-(\d+)(?:-by-(\d+))?")  # an earlier version knew no epoch


@dataclass(frozen=True)
class Manifests:
    """Those of one stage and partition."""

    states: Path
    stage: int
    partition: int
    partitions: int
    epoch: int = NONE  # of the run
    synced: bool = False

    def after(self, batch: int) -> dict[int, bytes]:
        """Of each unit that has been seen so far. Nothing was before batch 0."""
        if batch < 0:
            return {}
        files = _files(self.states, batch, self.stage)
        own = [files[self.partition]] if len(files) == self.partitions else files
        known = {unit: manifest for file in own for unit, manifest in _read(file).items()}
        return {unit: known[unit] for unit in known if unit % self.partitions == self.partition}

    def write(self, batch: int, manifests: Mapping[int, bytes], fresh: Collection[Path] = ()) -> None:
        """The batch counts once all partitions have done this and Spark has noted it.

        fresh: the files that these manifests name and those of the batch before do not.
        """
        file = self._file(batch)
        sizes = orjson.dumps([(unit, len(manifest)) for unit, manifest in manifests.items()])
        content = b"\n".join([sizes, b"".join(manifests.values())])
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file, hidden=True) as aside:
            aside.write_bytes(xxhash.xxh3_64_digest(content) + content)
            if self.synced:
                units = {f.parent for f in fresh}
                sync([aside, *fresh, *units, *{unit.parent for unit in units}])
        if self.synced:
            sync([file.parent, file.parent.parent, self.states])

    def sweep(self, batch: int, retained: int) -> None:
        """Deletes, while `batch` runs, those of all but the `retained` batches before it. One task does it for all."""
        if (self.stage, self.partition) == (0, 0):
            for old in kept(self.states):
                if old < batch - retained:
                    shutil.rmtree(folder(self.states, old), ignore_errors=True)

    def _file(self, batch: int) -> Path:
        name = f"{self.stage}-{self.partition}-of-{self.partitions}-by-{self.epoch}"
        return folder(self.states, batch) / name


def kept(states: Path) -> list[int]:
    """The batches of which there are manifests."""
    found = (states / "manifests").glob("*")
    return sorted(int(f.name) for f in found if f.name.isdigit())


def folder(states: Path, batch: int) -> Path:
    """Where the manifests of a batch lie."""
    return states / "manifests" / f"{batch:08d}"


def everything(states: Path, batch: int, stage: int) -> dict[int, bytes]:
    """The manifests of all units of a stage after a batch; a file that is missing or damaged is named."""
    return {u: m for file in _files(states, batch, stage) for u, m in _read(file).items()}


def _files(states: Path, batch: int, stage: int) -> list[Path]:
    """By partition: of the numbers of partitions whose files are all there the one that was written last."""
    by_count: dict[int, dict[int, tuple[int, Path]]] = {}
    for file in folder(states, batch).glob(f"{stage}-*"):
        if name := _NAME.fullmatch(file.name):
            partition, count, epoch = int(name[2]), int(name[3]), int(name[4] or NONE)
            of = by_count.setdefault(count, {})
            of[partition] = max(of.get(partition, (-1, file)), (epoch, file))
    whole_ones = [of for count, of in by_count.items() if len(of) == count]
    if not whole_ones:
        raise StateError(f"{folder(states, batch)}: manifests of stage {stage} are missing; {WAY_BACK}")
    latest = max(whole_ones, key=lambda of: (max(of.values())[0], -len(of)))
    return [latest[partition][1] for partition in range(len(latest))]


def _read(file: Path) -> dict[int, bytes]:
    raw = file.read_bytes()
    content = raw[_DIGEST:]
    if xxhash.xxh3_64_digest(content) != raw[:_DIGEST]:
        raise StateError(f"{file}: damaged, its checksum does not fit; {WAY_BACK}")
    sizes, _, manifests = content.partition(b"\n")
    found, at = {}, 0
    for unit, size in orjson.loads(sizes):
        found[unit] = manifests[at : at + size]
        at += size
    return found
