"""The index of rows that are not searched by hash, in joins without an equality.

It has the interface of `Chains` without its file, which saves 17 bytes per row.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, U64


class Unchained:
    """Counts rows and stores nothing; rows of such a join are never marked."""

    stale = dirty = False
    allocated_bytes = 0

    def __init__(self, path: Path, skip_bits: int) -> None:
        self.path, self.skip_bits = path, skip_bits
        self.rows = self.token = self.marks_token = 0
        self.marks: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)

    def begin(self) -> None:
        """Do nothing: there is no change that could be interrupted."""

    def finish(self, token: int, marks_token: int) -> None:
        """Store the tokens, as `Chains.finish` does."""
        self.token, self.marks_token = token, marks_token

    def insert(self, hashes: U64) -> int:
        """Return the number of the first of these rows."""
        self.rows += len(hashes)
        return self.rows - len(hashes)

    def mark(self, rows: I32) -> I32:
        """Return an empty array: no row was marked before, and none is marked now."""
        return rows[:0]

    def flag(self, rows: I32, flags: npt.NDArray[np.uint8]) -> None:
        """Do nothing: rows without chains have no flags."""

    def clear_marks(self) -> None:
        """Do nothing: no row is marked."""
