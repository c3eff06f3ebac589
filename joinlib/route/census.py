"""What map tasks have seen of a batch, on its way to the process that rules the next one: small files in one folder.

A task that is run again writes the same file again. Statistics that are lost, or late, only mean an older rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from joinlib.files import whole
from joinlib.route.hotspot import I64, U64, Reservoir

SAMPLE = 32_768  # of a map task


@dataclass
class Census:
    """Rows of each unit as they were routed, and as hashes alone would have sent them; a sample of their hashes."""

    counts: I64
    plain: I64
    reservoir: Reservoir

    @classmethod
    def begin(cls, units: int, seed: int) -> "Census":
        return cls(np.zeros(units, np.int64), np.zeros(units, np.int64), Reservoir(SAMPLE, seed))

    def see(self, hashes: U64, units: I64, plain: I64) -> None:
        if not len(hashes):  # of no rows, NumPy would count as doubles
            return
        self.counts += np.bincount(units, minlength=len(self.counts))
        self.plain += np.bincount(plain, minlength=len(self.plain))
        self.reservoir.see(hashes)

    def write(self, folder: Path, name: str) -> None:
        """One file, whole at once."""
        folder.mkdir(parents=True, exist_ok=True)
        with whole(folder / f"{name}.npz", hidden=True) as aside, open(aside, "wb") as file:
            np.savez(file, counts=self.counts, plain=self.plain, sample=self.reservoir.sample)


def collect(folder: Path, units: int) -> tuple[I64, I64, U64]:
    """Both counts and the sample of all files, which are gone then. A sample weighs as much as the rows it stands for."""
    counts, plain, parts = np.zeros(units, np.int64), np.zeros(units, np.int64), []
    for path in sorted(folder.glob("[!.]*.npz")) if folder.is_dir() else []:
        with np.load(path) as file:
            if len(file["counts"]) == units:
                counts, plain = counts + file["counts"], plain + file["plain"]
                parts.append((int(file["counts"].sum()), file["sample"]))
        path.unlink(missing_ok=True)
    return counts, plain, np.concatenate([np.zeros(0, np.uint64), *_even(parts)])


def _even(parts: list[tuple[int, U64]]) -> Iterable[U64]:
    """As much of each sample as its task's share of all rows."""
    most = max((rows / max(len(sample), 1) for rows, sample in parts), default=1.0)
    for rows, sample in parts:
        keep = round(rows / most)
        yield sample[np.arange(keep) * len(sample) // max(keep, 1)]
