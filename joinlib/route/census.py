"""Statistics of a batch, which map tasks write as small files for the process that makes the next rule.

A task that is retried writes the same file again. Statistics that are lost or late only delay a new rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from joinlib.arrays import I64, U64
from joinlib.files import whole
from joinlib.route.hotspot import Reservoir

SAMPLE = 32_768  # hashes sampled by a map task


@dataclass
class Census:
    """Rows of each unit as routed and as routed by hash alone, and a sample of the rows' hashes."""

    counts: I64
    plain: I64
    reservoir: Reservoir

    @classmethod
    def begin(cls, units: int, seed: int) -> "Census":
        return cls(np.zeros(units, np.int64), np.zeros(units, np.int64), Reservoir(SAMPLE, seed))

    def see(self, hashes: U64, units: I64, plain: I64) -> None:
        if not len(hashes):  # for an empty array, NumPy would count in doubles
            return
        self.counts += np.bincount(units, minlength=len(self.counts))
        self.plain += np.bincount(plain, minlength=len(self.plain))
        self.reservoir.see(hashes)

    def write(self, folder: Path, name: str) -> None:
        """Write the statistics to one file, atomically, if there are some."""
        if not self.counts.any():
            return
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / f"{name}.npz", hidden=True) as aside, open(aside, "wb") as file:
            np.savez(file, counts=self.counts, plain=self.plain, sample=self.reservoir.sample)


def collect(folder: Path, units: int) -> tuple[I64, I64, U64]:
    """Return both counts and the sample of all files, and delete the files.

    Samples are weighted by the rows that they represent.
    """
    counts, plain, parts = np.zeros(units, np.int64), np.zeros(units, np.int64), []
    for path in sorted(folder.glob("[!.]*.npz")) if folder.is_dir() else []:
        with np.load(path) as file:
            if len(file["counts"]) == units:
                counts, plain = counts + file["counts"], plain + file["plain"]
                parts.append((int(file["counts"].sum()), file["sample"]))
        path.unlink(missing_ok=True)
    return counts, plain, np.concatenate([np.zeros(0, np.uint64), *_even(parts)])


def _even(parts: list[tuple[int, U64]]) -> Iterable[U64]:
    """Yield part of each sample, in proportion to its task's share of all rows."""
    most = max((rows / max(len(sample), 1) for rows, sample in parts), default=1.0)
    for rows, sample in parts:
        keep = round(rows / most)
        yield sample[np.arange(keep) * len(sample) // max(keep, 1)]
