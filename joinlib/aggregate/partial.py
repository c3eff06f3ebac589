"""Partials: one row for each group, which can be merged with partials of further rows.

    count   $a.n         sum   $a.s         avg   $a.s, $a.n         min, max   $a.m         all groups   $n

Law: partial(rows) = merge(partials of any division of the rows); merge is associative (sums of doubles up to
rounding).

Integers are summed in decimals of 38 digits, and decimals of more than 28 digits in 76, so whether a sum
overflows does not depend on the order of rows. Doubles are compared as the integers of `index.order`: NaN
is the greatest.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import types as t
from joinlib.index.order import ordered
from joinlib.model.grouping import AggregateCall, Grouping
from joinlib.model.inputs import HASH
from joinlib.route.hash import key_hash

_AT = "$at"
ROWS = "$n"  # number of joined rows of the group
_LARGE = 2**62  # sums of integers that must stay below this are computed in BIGINT
_CHUNK = 1 << 16  # number of partials at which those of several chunks are merged

Step = tuple[str, pa.DataType, str]  # a column of partials, its type, and the function that merges it


@cache
def steps(grouping: Grouping) -> tuple[Step, ...]:
    """Return the columns of partials that follow the keys."""
    return ((ROWS, pa.int64(), "sum"), *(s for call in grouping.calls for s in _steps(call)))


def _steps(call: AggregateCall) -> Iterator[Step]:
    if call.function in ("sum", "avg"):
        yield f"{call.name}.s", _wide(call.source), "sum"
    if call.function == "avg" or (call.function == "count" and call.argument is not None):
        yield f"{call.name}.n", pa.int64(), "sum"
    if call.function in ("min", "max"):
        yield f"{call.name}.m", pa.int64() if t.is_float(call.source) else call.source, call.function


def _wide(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values are summed."""
    if t.is_float(kind):
        return pa.float64()
    if not t.is_decimal(kind):
        return pa.decimal128(38, 0)
    return pa.decimal128(38, kind.scale) if kind.precision <= 28 else pa.decimal256(76, kind.scale)


@cache
def schema(grouping: Grouping) -> pa.Schema:
    """Return the schema of partials: hash of the key, keys, steps."""
    keys = [pa.field(k.name, k.type) for k in grouping.keys]
    return pa.schema(
        [pa.field(HASH, pa.uint64()), *keys, *(pa.field(n, kind) for n, kind, _ in steps(grouping))]
    )


def partial(rows: pa.RecordBatch, grouping: Grouping) -> pa.RecordBatch:
    """Return the partials of joined rows (columns $g, $x), in the groups' order of appearance. O(rows)."""
    keys = {k.name: _alike(rows.column(k.name)) for k in grouping.keys}
    values = {n: v for call in grouping.calls for n, v in _values(call, rows).items()}
    table = pa.table({**keys, **values, ROWS: pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)})
    return _grouped(
        table, [k.name for k in grouping.keys], [_first(n, f) for n, _, f in steps(grouping)], grouping
    )


def _first(name: str, function: str) -> tuple[str, str]:
    """Return the column and the function that compute a column of partials from joined rows."""
    return name, "count" if name.endswith(".n") else function


def _values(call: AggregateCall, rows: pa.RecordBatch) -> dict[str, pa.Array]:
    if call.argument is None:
        return {}
    value = rows.column(call.argument)
    made: dict[str, Callable[[pa.Array], pa.Array]] = {"s": _summable, "n": lambda v: v, "m": _comparable}
    return {name: made[name[-1]](value) for name, _, _ in _steps(call)}


def _summable(value: pa.Array) -> pa.Array:
    """Return the values in a type in which their sum cannot overflow."""
    if t.is_float(value.type):
        return value.cast(pa.float64())
    if t.is_decimal(value.type):
        return value.cast(_wide(value.type))
    ends = pc.min_max(value).as_py().values()
    largest = max((abs(end) for end in ends if end is not None), default=0)
    return value.cast(pa.int64() if largest * len(value) < _LARGE else pa.decimal128(38, 0))


def _comparable(value: pa.Array) -> pa.Array:
    if not t.is_float(value.type):
        return value
    numbers = pc.fill_null(value.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    return pa.array(ordered(numbers), mask=value.is_null().to_numpy(zero_copy_only=False))


def merge(parts: Sequence[pa.RecordBatch], grouping: Grouping) -> pa.RecordBatch:
    """Return one partial for each group, in the groups' order of appearance. O(rows)."""
    table = pa.Table.from_batches(parts, schema(grouping))
    if not table.num_rows:
        return pa.RecordBatch.from_pylist([], schema(grouping))
    return _grouped(table, [k.name for k in grouping.keys], [(n, f) for n, _, f in steps(grouping)], grouping)


def _grouped(
    table: pa.Table, keys: list[str], wanted: list[tuple[str, str]], grouping: Grouping
) -> pa.RecordBatch:
    # Arrow returns groups in no particular order.
    table = table.append_column(_AT, pa.array(np.arange(table.num_rows)))
    found = table.group_by(keys, use_threads=False).aggregate([*wanted, (_AT, "min")])
    if keys:
        found = found.take(pa.array(np.argsort(found.column(found.num_columns - 1).to_numpy())))
    fields = list(schema(grouping))[1:]
    columns = [_one(c).cast(f.type) for c, f in zip(found.columns, fields, strict=False)]
    if not keys:
        columns[0] = columns[0].fill_null(0)  # the sum of no counts is 0, not NULL
    return pa.record_batch(
        [pa.array(_hashes(columns[: len(keys)], found.num_rows)), *columns], schema(grouping)
    )


def nothing(grouping: Grouping) -> pa.RecordBatch:
    """Return the partial of no rows: empty, except that a query without GROUP BY always has one group."""
    columns = [(k.name, k.type) for k in grouping.keys]
    columns += [(c.argument, c.source) for c in grouping.calls if c.argument is not None]
    kinds = dict(columns) or {"$": pa.int64()}
    return partial(pa.record_batch([pa.array([], kind) for kind in kinds.values()], list(kinds)), grouping)


class Partials:
    """The partials of a unit's batch, merged as they arrive.

    Memory use depends on the number of groups, not of rows.
    """

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self._parts: list[pa.RecordBatch] = []
        self._rows, self._limit = 0, _CHUNK

    def add(self, rows: pa.RecordBatch) -> None:
        """Add joined rows."""
        part = partial(rows, self.grouping)
        self._parts.append(part)
        self._rows += part.num_rows
        if self._rows > self._limit:
            self._parts = [merge(self._parts, self.grouping)]
            self._rows = self._parts[0].num_rows
            self._limit = max(_CHUNK, 2 * self._rows)

    def merged(self) -> pa.RecordBatch:
        return merge(self._parts, self.grouping) if len(self._parts) != 1 else self._parts[0]


def _alike(key: pa.Array) -> pa.Array:
    """Return keys with equal bits where they are equal in SQL (NaN, -0.0)."""
    if not t.is_float(key.type):
        return key
    plain = pc.add(key, pa.scalar(0.0, key.type))
    return pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), key.type), plain)


def _hashes(keys: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return the hash of each key; NULL hashes like zero."""
    if not keys:
        return pa.array([0] * rows, pa.uint64())
    return pa.array(key_hash([k.fill_null(_zero(k.type)) if k.null_count else k for k in keys]))


def _zero(kind: pa.DataType) -> pa.Scalar:
    if t.is_string(kind) or kind == t.BINARY:
        return pa.scalar(b"").cast(kind)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(32))])[0]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
