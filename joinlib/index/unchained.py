"""Rows that nobody looks for by their hashes: a join without an equality. `Chains` without a file, 17 bytes a row less."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from joinlib.index.chains import I32, U64


class Unchained:
    """Knows what it would hold, and holds nothing; no row of such a join is ever marked."""

    stale = dirty = False
    allocated_bytes = 0

    def __init__(self, path: Path, skip_bits: int) -> None:
        self.path, self.skip_bits = path, skip_bits
        self.rows = self.token = self.marks_token = 0
        self.marks: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)

    def begin(self) -> None:
        """Nothing can be cut off half way."""

    def finish(self, token: int, marks_token: int) -> None:
        """As `Chains.finish`."""
        self.token, self.marks_token = token, marks_token

    def insert(self, hashes: U64) -> int:
        """The number of the first of these rows."""
        self.rows += len(hashes)
        return self.rows - len(hashes)

    def mark(self, rows: I32) -> I32:
        """None of them was marked, and none is."""
        return rows[:0]

    def clear_marks(self) -> None:
        """None is set."""
