"""The manifests of all units after each batch, as files; a batch counts once they are written.

    STATES/manifests/00000041/0-3-of-8-by-7      after batch 41: the units of stage 0 in partition 3 of 8,
                                                 written by the run of epoch 7

Laws: the files of a batch are made from those of the previous batch and the batch's input alone, and are
written aside and renamed. So attempts of a run write the same files, in any order, and an interrupted batch
runs again as if it had never begun. Where several runs have written a file, that of the latest run counts:
a late task of an older run changes nothing. With `synced`, everything that a manifest names is on disk
before the manifest itself.

Unit u is in partition u mod n; the number of partitions may differ from batch to batch.
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

_DIGEST = 8  # bytes at the start of a file
_NAME = re.compile(r"(\d+)-(\d+)-of-(\d+)(?:-by-(\d+))?")  # an earlier version had no epochs


@dataclass(frozen=True)
class Manifests:
    """The manifests of one stage and partition."""

    states: Path
    stage: int
    partition: int
    partitions: int
    epoch: int = NONE  # epoch of the run
    synced: bool = False

    def after(self, batch: int) -> dict[int, bytes]:
        """Return the manifest of each unit of this partition that has state after `batch`; {} before batch 0.

        Raises:
            StateError: a manifest file is missing or damaged.
        """
        if batch < 0:
            return {}
        files = _files(self.states, batch, self.stage)
        own = [files[self.partition]] if len(files) == self.partitions else files
        known = {unit: manifest for file in own for unit, manifest in _read(file).items()}
        return {unit: known[unit] for unit in known if unit % self.partitions == self.partition}

    def write(self, batch: int, manifests: Mapping[int, bytes], fresh: Collection[Path] = ()) -> None:
        """Write the manifests after a batch. The batch counts once all partitions have written and Spark
        has noted it.

        fresh: the files that these manifests name and those of the previous batch do not.
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
        """Delete the manifests of all but the `retained` batches before `batch`, the current one.

        The task of stage 0 and partition 0 does it for all.
        """
        if (self.stage, self.partition) == (0, 0):
            for old in kept_batches(self.states):
                if old < batch - retained:
                    shutil.rmtree(folder(self.states, old), ignore_errors=True)

    def _file(self, batch: int) -> Path:
        name = f"{self.stage}-{self.partition}-of-{self.partitions}-by-{self.epoch}"
        return folder(self.states, batch) / name


def kept_batches(states: Path) -> list[int]:
    """Return the batches that have manifests, ascending."""
    found = (states / "manifests").glob("*")
    return sorted(int(f.name) for f in found if f.name.isdigit())


def folder(states: Path, batch: int) -> Path:
    """Return the folder of the manifests of a batch."""
    return states / "manifests" / f"{batch:08d}"


def everything(states: Path, batch: int, stage: int) -> dict[int, bytes]:
    """Return the manifests of all units of a stage after a batch, by unit.

    Raises:
        StateError: a manifest file is missing or damaged.
    """
    return {u: m for file in _files(states, batch, stage) for u, m in _read(file).items()}


def one(states: Path, batch: int, stage: int) -> bytes | None:
    """Return the manifest of some unit of a stage after a batch, None if no unit has one: all are told the same of time.

    Raises:
        StateError: a manifest file is missing or damaged.
    """
    for file in _files(states, batch, stage):
        for manifest in _read(file).values():
            return manifest
    return None


def _files(states: Path, batch: int, stage: int) -> list[Path]:
    """Return the manifest files of a stage, by partition.

    If there are complete sets for several numbers of partitions, the one written last is taken.
    """
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
