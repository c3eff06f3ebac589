"""Partials: one row for each group, which can be merged with partials of further rows.

    those of the calls (`model.partials`), and $n, the number of rows

Law: partial(rows) = merge(partials of any division of the rows); merge is associative (sums of doubles up to
rounding).

Integers are summed in decimals of 38 digits, and decimals of more than 28 digits in 76, so whether a sum
overflows does not depend on the order of rows. Doubles are compared as the integers of `index.order`: NaN
is the greatest.

Rows that are changes count by their weights, so sums of doubles, min and max are computed from bags (`bag`), and
a sum is kept with the count that says whether there is one. What is left of a group without rows is then a row
of zeros, which `living` drops.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate import bag as bags
from joinlib.aggregate.bag import comparable
from joinlib.aggregate.keys import alike, hashes
from joinlib.aggregate.pile import Pile
from joinlib.arrays import I64
from joinlib.expr import types as t
from joinlib.model.bags import Bag, bags_of, distinct_of
from joinlib.model.grouping import AggregateCall, Grouping
from joinlib.model.inputs import HASH, WEIGHT
from joinlib.model.partials import Step, steps_of, wide
from joinlib.route import content

_AT = "$at"
ROWS = "$n"  # number of joined rows of the group
_LARGE = 2**62  # sums of integers that must stay below this are computed in BIGINT


@cache
def steps(grouping: Grouping) -> tuple[Step, ...]:
    """Return the columns of partials that follow the keys."""
    found = (step for call in grouping.calls for step in steps_of(call, grouping.changes))
    return ((ROWS, pa.int64(), "sum"), *found)


@cache
def schema(grouping: Grouping) -> pa.Schema:
    """Return the schema of partials: hash of the key, keys, steps."""
    keys = [pa.field(k.name, k.type) for k in grouping.keys]
    return pa.schema(
        [pa.field(HASH, pa.uint64()), *keys, *(pa.field(n, kind) for n, kind, _ in steps(grouping))]
    )


def partial(rows: pa.RecordBatch, grouping: Grouping) -> pa.RecordBatch:
    """Return the partials of joined rows (columns $g, $x, and $weight if they are changes), in the groups'
    order of appearance. O(rows).
    """
    if grouping.changes or any(call.distinct for call in grouping.calls):
        plain = [call for call in grouping.calls if not call.distinct]
        return _weighted(rows, grouping, plain, content.weights(rows))
    keys = {k.name: alike(rows.column(k.name)) for k in grouping.keys}
    values = {n: v for call in grouping.calls for n, v in _values(call, rows).items()}
    table = pa.table({**keys, **values, ROWS: pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)})
    return _grouped(
        table, [k.name for k in grouping.keys], [_first(n, f) for n, _, f in steps(grouping)], grouping
    )


def of_distinct(rows: pa.RecordBatch, grouping: Grouping, bag: Bag) -> pa.RecordBatch:
    """Return the partials of rows that a bag of distinct values gives; no row of the join is counted."""
    calls = [call for call in grouping.calls if distinct_of(call) == bag]
    return _weighted(rows, grouping, calls, np.zeros(rows.num_rows, np.int64))


def _weighted(
    rows: pa.RecordBatch, grouping: Grouping, calls: Sequence[AggregateCall], counts: I64
) -> pa.RecordBatch:
    """Return partials in which only these calls are computed. `counts`: rows of the group that a row stands for."""
    weights = content.weights(rows)
    columns = {k.name: alike(rows.column(k.name)) for k in grouping.keys} | {ROWS: pa.array(counts)}
    for call in grouping.calls:
        for name, kind, _ in steps_of(call, grouping.changes):
            if call not in calls:
                columns[name] = pa.nulls(rows.num_rows, kind)
            elif name.endswith(".n"):
                known = rows.column(str(call.argument)).is_valid().to_numpy(zero_copy_only=False)
                columns[name] = pa.array(np.where(known, weights, 0))
            elif name.endswith(".s"):
                columns[name] = _weighed(rows.column(str(call.argument)), weights)
            else:
                columns[name] = comparable(rows.column(str(call.argument)))
    return _grouped(
        pa.table(columns), [k.name for k in grouping.keys], [(n, f) for n, _, f in steps(grouping)], grouping
    )


def _weighed(value: pa.Array, weights: I64) -> pa.Array:
    """Return each value times its weight, in a type in which their sum cannot overflow."""
    most = int(np.abs(weights).max(initial=1))
    if t.is_float(value.type):
        return pc.multiply(value.cast(pa.float64()), pa.array(weights.astype(np.float64)))
    if most == 1:
        plain = _summable(value)
        return pc.if_else(pa.array(weights > 0), plain, pc.negate(plain))
    plain = _summable(value, most)
    if plain.type == pa.int64():
        return pc.multiply(plain, pa.array(weights))
    exact = value.cast(pa.decimal128(38, 0)) if t.is_integer(value.type) else value
    exact = exact.cast(pa.decimal256(38, exact.type.scale))
    times = pa.array(weights).cast(pa.decimal256(19, 0))
    return pc.multiply(exact, times).cast(wide(value.type))


def _first(name: str, function: str) -> tuple[str, str]:
    """Return the column and the function that compute a column of partials from joined rows."""
    return name, "count" if name.endswith(".n") else function


def _values(call: AggregateCall, rows: pa.RecordBatch) -> dict[str, pa.Array]:
    if call.argument is None:
        return {}
    made: dict[str, Callable[[pa.Array], pa.Array]] = {"s": _summable, "n": lambda v: v, "m": comparable}
    return {name: made[name[-1]](rows.column(call.argument)) for name, _, _ in steps_of(call, False)}


def _summable(value: pa.Array, times: int = 1) -> pa.Array:
    """Return the values in a type in which the sum of them, each so many times, cannot overflow."""
    if t.is_float(value.type):
        return value.cast(pa.float64())
    if t.is_decimal(value.type):
        return value.cast(wide(value.type))
    ends = pc.min_max(value).as_py().values()
    largest = max((abs(end) for end in ends if end is not None), default=0)
    return value.cast(pa.int64() if largest * len(value) * times < _LARGE else pa.decimal128(38, 0))


def merge(parts: Sequence[pa.RecordBatch], grouping: Grouping) -> pa.RecordBatch:
    """Return one partial for each group, in the groups' order of appearance. Hashes of parts are not read. O(rows)."""
    if not any(part.num_rows for part in parts):
        return pa.RecordBatch.from_pylist([], schema(grouping))
    table = pa.Table.from_batches(parts)
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
    for at, field in enumerate(fields):
        if field.name == ROWS or field.name.endswith(".n"):
            columns[at] = columns[at].fill_null(0)  # the sum of no counts is 0, not NULL
    return pa.record_batch([hashes(columns[: len(keys)], found.num_rows), *columns], schema(grouping))


def living(part: pa.RecordBatch, grouping: Grouping) -> pa.RecordBatch:
    """Return the partials without those that add nothing: all that came has gone again."""
    if not grouping.changes or not grouping.keys:
        return part
    some = np.zeros(part.num_rows, bool)
    for name, kind, _ in steps(grouping):
        other = pc.not_equal(part.column(name), pa.scalar(0, pa.int64()).cast(kind))
        some |= other.fill_null(False).to_numpy(zero_copy_only=False)
    return part.filter(pa.array(some))


def nothing(grouping: Grouping) -> pa.RecordBatch:
    """Return the partial of no rows: empty, except that a query without GROUP BY always has one group."""
    columns = [(k.name, k.type) for k in grouping.keys]
    columns += [argument for c in grouping.calls for argument in c.arguments]
    kinds = {**dict(columns), WEIGHT: pa.int64()}
    return partial(pa.record_batch([pa.array([], kind) for kind in kinds.values()], list(kinds)), grouping)


class Partials:
    """The partials of a unit's batch, and what it adds to bags, merged as rows arrive.

    Memory use depends on the number of groups and of their different values, not of rows.
    """

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self._partials = Pile(lambda parts: merge(parts, grouping))
        self._bags = [
            (number, bag, Pile(lambda parts, bag=bag: bags.merged(parts, grouping, bag)))  # type: ignore[misc]
            for number, bag in enumerate(bags_of(grouping), 1)
            if not bag.rest
        ]

    def add(self, rows: pa.RecordBatch) -> None:
        """Add joined rows, which end with their weight if they are changes."""
        self._partials.add(partial(rows, self.grouping))
        for _, bag, pile in self._bags:
            pile.add(bags.added(rows, self.grouping, bag))

    def merged(self) -> pa.RecordBatch:
        return self._partials.merged()

    def blocks(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the partials as number 0, and what the bags get, by their numbers from 1 on."""
        yield 0, self.merged()
        yield from ((number, found) for number, _, pile in self._bags if (found := pile.merged()).num_rows)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
