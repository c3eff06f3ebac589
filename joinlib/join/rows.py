"""Rows that are named, not copied: columns are gathered only when something reads them, and once.

A *tuple* is one row of each input that is joined so far; `Tuples` holds many, column by column.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import Column
from joinlib.route.config import HASH
from joinlib.state.run import I32, I64, LiveRun

Positions = npt.NDArray[np.signedinteger]


class Rows(Protocol):
    """A selection of rows of one source."""

    schema: pa.Schema

    def __len__(self) -> int: ...
    def column(self, name: str) -> Column: ...
    def take(self, positions: Positions) -> "Rows": ...


class Picked:
    """Rows of one record batch; `positions` None: all of them."""

    def __init__(self, batch: pa.RecordBatch, positions: Positions | None = None) -> None:
        self.schema, self._batch, self.positions = batch.schema, batch, positions

    def __len__(self) -> int:
        return self._batch.num_rows if self.positions is None else len(self.positions)

    def column(self, name: str) -> Column:
        column = self._batch.column(name)
        return column if self.positions is None else _take(column, self._numbers)

    @cached_property
    def _numbers(self) -> pa.Array:
        return pa.array(self.positions)

    def take(self, positions: Positions) -> "Picked":
        return Picked(self._batch, positions if self.positions is None else self.positions[positions])


class Stored:
    """Rows of a run, by number. `ends`: where the rows of each segment end, if they are grouped by segment."""

    def __init__(self, live: LiveRun, numbers: I32, ends: I64 | None = None) -> None:
        self.schema = live.batches[0].schema
        self.live, self.numbers, self._ends = live, numbers, ends
        if ends is None and len(live.batches) == 1:
            self._ends = np.array([len(numbers)])

    def __len__(self) -> int:
        return len(self.numbers)

    def column(self, name: str) -> Column:
        if self._ends is None:
            homes = np.searchsorted(self.live.starts, self.numbers, side="right")
            order = np.argsort(homes, kind="stable")
            grouped = Stored(
                self.live,
                self.numbers[order],
                np.cumsum(np.bincount(homes, minlength=len(self.live.starts))[1:]),
            )
            back = np.empty(len(order), np.int64)
            back[order] = np.arange(len(order))
            return _take(flat(grouped.column(name)), pa.array(back))
        parts = [_take(batch.column(name), numbers) for batch, numbers in self._groups]
        return parts[0] if len(parts) == 1 else pa.chunked_array(parts, self.schema.field(name).type)

    @cached_property
    def _groups(self) -> list[tuple[pa.RecordBatch, pa.Array]]:
        """The segments that hold some of the rows, and which of theirs."""
        assert self._ends is not None
        ends = self._ends.tolist()
        spans = zip(self.live.batches, self.live.starts.tolist(), [0, *ends], ends, strict=False)
        return [(batch, pa.array(self.numbers[a:b] - first)) for batch, first, a, b in spans if b > a]

    def take(self, positions: Positions) -> "Stored":
        return Stored(self.live, self.numbers[positions])

    def filter(self, kept: Positions) -> "Stored":
        """As `take`, for ascending positions: groups stay groups."""
        ends = None if self._ends is None else np.searchsorted(kept, self._ends)
        return Stored(self.live, self.numbers[kept], ends)


class Nulls:
    """The missing side of an outer row."""

    def __init__(self, schema: pa.Schema, rows: int) -> None:
        self.schema, self._rows = schema, rows

    def __len__(self) -> int:
        return self._rows

    def column(self, name: str) -> Column:
        return pa.nulls(self._rows, self.schema.field(name).type)

    def take(self, positions: Positions) -> "Nulls":
        return Nulls(self.schema, len(positions))


class Tuples:
    """Aligned selections, one for each input joined so far."""

    def __init__(self, *parts: Rows) -> None:
        self.parts = parts
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.parts[0])

    def column(self, name: str) -> Column:
        """A column by its qualified name; "$hash" is that of the first part that has one."""
        if name not in self._columns:
            self._columns[name] = self._find(name).column(name)
        return self._columns[name]

    def _find(self, name: str) -> Rows:
        for part in self.parts:
            if name in part.schema.names and not (name == HASH and isinstance(part, Nulls)):
                return part
        raise KeyError(name)

    def hashes(self) -> npt.NDArray[np.uint64]:
        return flat(self.column(HASH)).to_numpy()

    def take(self, positions: Positions) -> "Tuples":
        return Tuples(*(part.take(positions) for part in self.parts))

    def filter(self, mask: npt.NDArray[np.bool_]) -> "Tuples":
        """Those where `mask` is true."""
        if mask.all():
            return self
        kept = np.flatnonzero(mask)
        return Tuples(*(p.filter(kept) if isinstance(p, Stored) else p.take(kept) for p in self.parts))

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The columns of `schema` as one record batch."""
        return pa.record_batch([flat(self.column(name)) for name in schema.names], schema)


def flat(column: Column) -> pa.Array:
    """The column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _take(column: pa.Array, numbers: pa.Array) -> pa.Array:
    return pc.take(column, numbers, boundscheck=False)


def concat(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """One record batch of many, or of none."""
    if len(batches) == 1:
        return batches[0]
    if batches:
        return pa.concat_batches(batches)
    return pa.record_batch([pa.array([], f.type) for f in schema], schema)
