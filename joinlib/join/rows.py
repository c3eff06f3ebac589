"""Selections of rows: columns are gathered only when something reads them, and once.

A *tuple* is one row of each input that is joined so far; `Tuples` holds many, column by column.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.expr import Column
from joinlib.index.pages import ahead
from joinlib.model.inputs import HASH, WEIGHT

Positions = npt.NDArray[np.signedinteger]


class Rows(Protocol):
    """A selection of rows of one source."""

    schema: pa.Schema

    def __len__(self) -> int: ...
    def column(self, name: str) -> Column: ...
    def take(self, positions: Positions) -> "Rows": ...


class Picked:
    """Rows of one record batch; `positions` None selects all of them."""

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


class Numbered(Protocol):
    """Record batches whose rows are numbered consecutively: those of one run, or of several."""

    @property
    def batches(self) -> list[pa.RecordBatch]: ...

    @property
    def starts(self) -> Positions:
        """The number of each batch's first row, and the number after the last row; shape (batches + 1,)."""
        ...

    @property
    def scattered(self) -> bool:
        """Whether some batches are memory-mapped and their pages are read on access."""
        ...


class Stored:
    """Stored rows, by number.

    ends: where the rows of each batch end in `numbers`, if they are grouped by batch; shape (batches,).
    """

    def __init__(self, home: Numbered, numbers: Positions, ends: I64 | None = None) -> None:
        self.schema = home.batches[0].schema
        self.home, self.numbers, self._ends = home, numbers, ends
        if ends is None and len(home.batches) == 1:
            self._ends = np.array([len(numbers)])

    @classmethod
    def together(cls, parts: "Sequence[Stored]") -> "Stored":
        """Concatenate the rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        firsts = np.cumsum([0, *(part.home.starts[-1] for part in parts)])
        counts = np.cumsum([0, *(len(part) for part in parts)])
        starts = [part.home.starts[:-1] + first for part, first in zip(parts, firsts)]
        batches = [batch for part in parts for batch in part.home.batches]
        scattered = any(part.home.scattered for part in parts)
        home = _Several(batches, np.append(np.concatenate(starts), firsts[-1]), scattered)
        numbers = np.concatenate([part.numbers + first for part, first in zip(parts, firsts)])
        ends = [part._ends + count for part, count in zip(parts, counts) if part._ends is not None]
        return cls(home, numbers, np.concatenate(ends) if len(ends) == len(parts) else None)

    def __len__(self) -> int:
        return len(self.numbers)

    def column(self, name: str) -> Column:
        if self._ends is None:
            grouped, back = self._by_batch
            return _take(flat(grouped.column(name)), back)
        columns = [(batch.column(name), numbers) for batch, numbers in self._groups]
        if self.home.scattered:
            ahead([(column, numbers.to_numpy()) for column, numbers in columns])
        parts = [_take(column, numbers) for column, numbers in columns]
        return parts[0] if len(parts) == 1 else pa.chunked_array(parts, self.schema.field(name).type)

    @cached_property
    def _by_batch(self) -> tuple["Stored", pa.Array]:
        """The same rows grouped by batch, and the position of each of these rows among them."""
        homes = np.searchsorted(self.home.starts, self.numbers, side="right")
        order = np.argsort(homes, kind="stable")
        ends = np.cumsum(np.bincount(homes, minlength=len(self.home.starts))[1:])
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return Stored(self.home, self.numbers[order], ends), pa.array(back)

    @cached_property
    def _groups(self) -> list[tuple[pa.RecordBatch, pa.Array]]:
        """The batches that hold some of the rows, each with the positions of these rows in it."""
        assert self._ends is not None
        ends = self._ends.tolist()
        spans = zip(self.home.batches, self.home.starts.tolist(), [0, *ends], ends, strict=False)
        return [(batch, pa.array(self.numbers[a:b] - first)) for batch, first, a, b in spans if b > a]

    def take(self, positions: Positions) -> "Stored":
        return Stored(self.home, self.numbers[positions])

    def filter(self, kept: Positions) -> "Stored":
        """Do the same as `take` for ascending positions: rows grouped by batch stay so."""
        ends = None if self._ends is None else np.searchsorted(kept, self._ends)
        return Stored(self.home, self.numbers[kept], ends)


class _Several(NamedTuple):
    """The concatenated batches of several runs."""

    batches: list[pa.RecordBatch]
    starts: Positions
    scattered: bool


class Nulls:
    """The missing side of an outer row: every column is NULL."""

    def __init__(self, schema: pa.Schema, rows: int) -> None:
        self.schema, self._rows = schema, rows

    def __len__(self) -> int:
        return self._rows

    def column(self, name: str) -> Column:
        return pa.nulls(self._rows, self.schema.field(name).type)

    def take(self, positions: Positions) -> "Nulls":
        return Nulls(self.schema, len(positions))


class Repeated:
    """Tuples that found partners, repeated once for each partner.

    Columns are gathered from those of the original tuples, which are few and close together.
    """

    def __init__(self, tuples: "Tuples", positions: Positions) -> None:
        self.schema = pa.schema({f.name: f for part in tuples.parts for f in part.schema}.values())
        self._tuples, self._positions = tuples, positions

    def __len__(self) -> int:
        return len(self._positions)

    def column(self, name: str) -> Column:
        return _take(self._tuples.whole(name), self._numbers)

    @cached_property
    def _numbers(self) -> pa.Array:
        return pa.array(self._positions)

    def take(self, positions: Positions) -> "Repeated":
        return Repeated(self._tuples, self._positions[positions])


class Tuples:
    """Aligned selections, one for each input joined so far."""

    def __init__(self, *parts: Rows) -> None:
        self.parts = parts
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.parts[0])

    def column(self, name: str) -> Column:
        """Return a column by its qualified name; "$hash" is that of the first part that has one.

        "$weight" is that of the rows that probe: a pair has the weight of its new row.
        """
        if name not in self._columns:
            self._columns[name] = self._one(name)
        return self._columns[name]

    def _one(self, name: str) -> Column:
        """Return a column; the weight is 1 where no part has one, since rows of the state are there once."""
        if name == WEIGHT and not any(WEIGHT in part.schema.names for part in self.parts):
            return pa.repeat(pa.scalar(1, pa.int64()), len(self))
        return self._find(name).column(name)

    def _find(self, name: str) -> Rows:
        for part in self.parts:
            if name in part.schema.names and not (name == HASH and isinstance(part, Nulls)):
                return part
        raise KeyError(name)

    def whole(self, name: str) -> pa.Array:
        """Return a column as one array; it is kept for later calls."""
        column = self._columns[name] = flat(self.column(name))
        return column

    def hashes(self) -> npt.NDArray[np.uint64]:
        return self.whole(HASH).to_numpy()

    def take(self, positions: Positions) -> "Tuples":
        return Tuples(*(part.take(positions) for part in self.parts))

    def each(self, positions: Positions) -> tuple[Rows, ...]:
        """Return the parts of `take(positions)`, to be joined with one more part.

        Where tuples are repeated, columns are gathered from the tuples and not from each part's own rows.
        """
        if len(self.parts) > 1 and len(positions) >= len(self):
            return (Repeated(self, positions),)
        return self.take(positions).parts

    def filter(self, mask: npt.NDArray[np.bool_]) -> "Tuples":
        """Return the tuples where `mask`, shape (tuples,), is true."""
        return self if mask.all() else self._kept(np.flatnonzero(mask))

    def slices(self, rows: int) -> "Iterator[Tuples]":
        """Yield the same tuples, at most `rows` at once."""
        if len(self) <= rows:
            yield self
            return
        for start in range(0, len(self), rows):
            some = self._kept(np.arange(start, min(start + rows, len(self))))
            some._columns = {name: column.slice(start, rows) for name, column in self._columns.items()}
            yield some

    def _kept(self, positions: Positions) -> "Tuples":
        """Return the tuples at ascending positions."""
        return Tuples(
            *(p.filter(positions) if isinstance(p, Stored) else p.take(positions) for p in self.parts)
        )

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the columns of `schema` as one record batch."""
        return pa.record_batch([flat(self.column(name)) for name in schema.names], schema)


def flat(column: Column) -> pa.Array:
    """Return the column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _take(column: pa.Array, numbers: pa.Array) -> pa.Array:
    return pc.take(column, numbers, boundscheck=False)


def concat(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Concatenate record batches; without any, return an empty batch of `schema`."""
    if len(batches) == 1:
        return batches[0]
    if batches:
        return pa.concat_batches(batches)
    return pa.record_batch([pa.array([], f.type) for f in schema], schema)
