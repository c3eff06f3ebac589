"""Rows that arrive part by part, of which only a merge is wanted.

Law: merge([part]) = part; merge(parts) is the same whichever of them are merged before.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa

CHUNK = 1 << 16  # number of rows at which those of several parts are merged


class Pile:
    """Batches that are merged whenever they have become many rows.

    Memory use depends on what merges leave, and each row is merged twice on average.
    """

    def __init__(self, merge: Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch]) -> None:
        self._merge = merge
        self._parts: list[pa.RecordBatch] = []
        self.rows, self.limit = 0, CHUNK

    def add(self, part: pa.RecordBatch) -> bool:
        """Add a part; return whether all are merged now."""
        self._parts.append(part)
        self.rows += part.num_rows
        if self.rows <= self.limit:
            return False
        self._parts = [self._merge(self._parts)]
        self.rows = self._parts[0].num_rows
        self.limit = max(CHUNK, 2 * self.rows)
        return True

    def merged(self) -> pa.RecordBatch:
        """Return the merge of all parts."""
        return self._merge(self._parts) if len(self._parts) != 1 else self._parts[0]
