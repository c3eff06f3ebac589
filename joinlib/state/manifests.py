"""The manifests of all units after each batch, as files: what a task begins with, and what makes its batch count.

    STATES/manifests/00000041/0-3-of-8      after batch 41: of those units of stage 0 that partition 3 of 8 has

Laws: the files of a batch are made from those of the batch before and its input alone, and written aside and renamed. So
attempts write the same, whoever comes last changes nothing, and a batch that is cut off runs again as if it had never begun.
Unit u is in partition u mod n: the number of partitions may be another in each batch.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import xxhash

from joinlib.errors import StateError
from joinlib.files import whole

_DIGEST = 8  # bytes, in front


@dataclass(frozen=True)
class Manifests:
    """Those of one stage and partition."""

    states: Path
    stage: int
    partition: int
    partitions: int

    def after(self, batch: int) -> dict[int, bytes]:
        """Of each unit that has been seen so far. Nothing was before batch 0."""
        if batch < 0:
            return {}
        own = self._file(batch, self.partition, self.partitions)
        files = [own] if own.exists() else self._others(batch)
        known = {unit: manifest for file in files for unit, manifest in _read(file).items()}
        return {unit: known[unit] for unit in known if unit % self.partitions == self.partition}

    def write(self, batch: int, manifests: Mapping[int, bytes]) -> None:
        """The batch counts once all partitions have done this and Spark has noted it."""
        file = self._file(batch, self.partition, self.partitions)
        sizes = orjson.dumps([(unit, len(manifest)) for unit, manifest in manifests.items()])
        content = b"\n".join([sizes, b"".join(manifests.values())])
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole(file, hidden=True) as aside:
            aside.write_bytes(xxhash.xxh3_64_digest(content) + content)

    def sweep(self, batch: int) -> None:
        """Deletes, while `batch` runs, what it cannot need any more. One task does it for all."""
        if (self.stage, self.partition) == (0, 0):
            for folder in _folder(self.states, batch).parent.iterdir():
                if folder.name.isdigit() and int(folder.name) < batch - 1:
                    shutil.rmtree(folder, ignore_errors=True)

    def _others(self, batch: int) -> list[Path]:
        """Files of another number of partitions, all of them."""
        by_count: dict[int, list[Path]] = {}
        for file in _folder(self.states, batch).glob(f"{self.stage}-*-of-*"):
            by_count.setdefault(int(file.name.rpartition("-")[2]), []).append(file)
        for count, files in sorted(by_count.items()):
            if len(files) == count:
                return files
        raise StateError(
            f"{_folder(self.states, batch)}: manifests of stage {self.stage} are missing; restore the checkpoint as it was,"
            " or start with a new one"
        )

    def _file(self, batch: int, partition: int, partitions: int) -> Path:
        return _folder(self.states, batch) / f"{self.stage}-{partition}-of-{partitions}"


def _folder(states: Path, batch: int) -> Path:
    return states / "manifests" / f"{batch:08d}"


def _read(file: Path) -> dict[int, bytes]:
    raw = file.read_bytes()
    content = raw[_DIGEST:]
    if xxhash.xxh3_64_digest(content) != raw[:_DIGEST]:
        raise StateError(
            f"{file}: damaged, its checksum does not fit; restore the checkpoint, or start with a new one"
        )
    sizes, _, manifests = content.partition(b"\n")
    found, at = {}, 0
    for unit, size in orjson.loads(sizes):
        found[unit] = manifests[at : at + size]
        at += size
    return found
