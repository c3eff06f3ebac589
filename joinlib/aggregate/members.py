"""Computes aggregates from the values of groups.

Law: the value of an aggregate depends on the values of the group and how often each is there, on nothing else.
So lists are sorted, and where several rows have the least y, min_by(x, y) is the least x of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate import statistics
from joinlib.aggregate.bag import doubles, starts
from joinlib.aggregate.exact import Sum
from joinlib.arrays import I64
from joinlib.expr import types as t
from joinlib.index import order
from joinlib.model.bags import Bag
from joinlib.model.grouping import AggregateCall, Grouping
from joinlib.model.inputs import HASH, WEIGHT

END = {"min": "first", "min_by": "first", "max": "last", "max_by": "last"}  # which values of a group decide


@dataclass(frozen=True)
class Members:
    """Rows of a bag; those of group i are `count[i]` rows from `first[i]` on."""

    rows: pa.RecordBatch
    weights: I64
    first: I64
    count: I64

    @property
    def empty(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return self.count == 0

    def at(self, name: str, rows: I64) -> pa.Array:
        """Return a column's value in one row for each group; NULL for groups without rows."""
        return self.rows.column(name).take(pa.array(rows, mask=self.empty))

    def every(self) -> I64:
        """Return the numbers of the rows of all groups, group by group."""
        return np.repeat(self.first - self.before(), self.count) + np.arange(int(self.count.sum()))

    def before(self) -> I64:
        """Return how many rows there are in the groups before each."""
        return np.cumsum(self.count) - self.count


def members(rows: pa.RecordBatch, groups: pa.RecordBatch, grouping: Grouping, bag: Bag) -> Members:
    """Find the rows of each of these groups; `rows` are sorted, and may be of other groups too.

    O(rows + groups log groups).
    """
    if bag.kind == "values":
        rows = rows.filter(pc.greater(rows.column(WEIGHT), 0))
    names = [HASH, *(k.name for k in grouping.keys)]
    heads = np.flatnonzero(starts(rows, names))
    ends = np.append(heads[1:], rows.num_rows)
    both = pa.concat_batches([groups.select(names), rows.take(pa.array(heads)).select(names)])
    sorted_ = pc.sort_indices(both, sort_keys=[(name, "ascending") for name in names])
    place = sorted_.to_numpy().astype(np.int64)
    again = np.flatnonzero(~starts(both.take(sorted_), names))
    pair = np.sort(np.stack([place[again - 1], place[again]]), axis=0)  # a group, and the same among heads
    group, head = pair[0], pair[1] - groups.num_rows
    first, count = (np.zeros(groups.num_rows, np.int64) for _ in range(2))
    first[group], count[group] = heads[head], (ends - heads)[head]
    return Members(rows, np.asarray(rows.column(WEIGHT)), first, count)


def computed(call: AggregateCall, of: Members) -> pa.Array:
    """Return the value of a call for each group."""
    name = call.arguments[0][0]
    build = _TABLE.get(call.function)
    if build is not None:
        return pa.array([build(total) for total in _sums(of)], pa.float64())
    if call.function in ("min", "min_by"):
        return _decoded(of.at(name, of.first), call.type)
    if call.function in ("max", "max_by"):
        return _decoded(of.at(name, of.first + of.count - 1), call.type)
    if call.function in ("collect_list", "collect_set"):
        return _list(call, of)
    if call.function == "percentile":
        return _percentiles(call, of)
    return _each(call, of)


def _each(call: AggregateCall, of: Members) -> pa.Array:
    """Compute from the values of each group, one after the other; NULL without values."""
    columns = [_decoded(of.rows.column(name), kind).to_pylist() for name, kind in call.arguments]
    found, weights = [], of.weights.tolist()
    for first, count in zip(of.first.tolist(), of.count.tolist(), strict=True):
        part = slice(first, first + count)
        given = [*(values[part] for values in columns), weights[part]]
        found.append(_of_group(call, given) if count else None)
    return pa.array(found, call.type)


def _of_group(call: AggregateCall, given: list[Any]) -> Any:
    if not call.fractions:
        return {**statistics.ONE, **statistics.PAIRS}[call.function](*given)
    sorted_, weights = given
    values = [statistics.nth(sorted_, weights, fraction) for fraction in call.fractions]
    if call.function == "percentile_disc":
        values = [float(value) for value in values]
    return values if t.is_nested(call.type) else values[0]


def _sums(of: Members) -> list[Sum]:
    codes, found = np.asarray(of.rows.column(of.rows.num_columns - 2)).tolist(), []
    counts = of.weights.tolist()
    for first, count in zip(of.first.tolist(), of.count.tolist(), strict=True):
        part = slice(first, first + count)
        found.append(Sum(dict(zip(codes[part], counts[part], strict=True))))
    return found


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


_TABLE: dict[str, Callable[[Sum], float | None]] = {
    "sum": Sum.total,
    "avg": Sum.mean,
    "var_pop": lambda s: s.variance(0),
    "var_samp": lambda s: s.variance(1),
    "stddev_pop": lambda s: _root(s.variance(0)),
    "stddev_samp": lambda s: _root(s.variance(1)),
}


def _list(call: AggregateCall, of: Members) -> pa.Array:
    rows = of.every()
    owner = np.repeat(np.arange(len(of.first)), of.count)
    if call.function == "collect_list":
        times = of.weights[rows]
        rows, owner = np.repeat(rows, times), np.repeat(owner, times)
    lengths = np.bincount(owner, minlength=len(of.first))
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    values = _decoded(of.rows.column(call.arguments[0][0]).take(pa.array(rows)), call.source)
    return pa.ListArray.from_arrays(offsets, values, call.type)


def _percentiles(call: AggregateCall, of: Members) -> pa.Array:
    """Interpolate between the two values around the place of each fraction among the sorted values, as Spark."""
    upto = np.append(0, np.cumsum(of.weights))
    base = upto[of.first]
    total = upto[of.first + of.count] - base
    values = _decoded(of.rows.column(call.arguments[0][0]), call.source)
    numbers = pc.fill_null(doubles(values), 0.0).to_numpy(zero_copy_only=False)
    found = []
    for fraction in call.fractions:
        place = np.maximum(total - 1, 0) * fraction
        low = np.floor(place)
        ends = [_nth(numbers, upto, base + at.astype(np.int64)) for at in (low, np.ceil(place))]
        with np.errstate(invalid="ignore"):
            made = (1 - (place - low)) * ends[0] + (place - low) * ends[1]
        found.append(np.where(ends[0] == ends[1], ends[0], made))
    if t.is_nested(call.type):
        flat = pa.array(np.stack(found, axis=1).reshape(-1))
        offsets = pa.array(np.arange(len(total) + 1, dtype=np.int32) * len(found))
        lists = pa.ListArray.from_arrays(offsets, flat, call.type)
        return pc.if_else(pa.array(~of.empty), lists, pa.scalar(None, call.type))
    return pa.array(found[0], mask=of.empty)


def _nth(
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]], upto: I64, at: I64
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the value that is the `at`-th of all, each counted as often as it is there."""
    if not len(numbers):
        return np.zeros(len(at))
    return numbers[np.minimum(np.searchsorted(upto, at, "right") - 1, len(numbers) - 1)]


def _decoded(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the doubles that are stored as integers; other values as they are."""
    if not t.is_float(kind):
        return values
    found = order.doubles(values.fill_null(0).to_numpy(zero_copy_only=False))
    return pa.array(found, mask=values.is_null().to_numpy(zero_copy_only=False)).cast(kind)


def decoded(rows: pa.RecordBatch, grouping: Grouping, bag: Bag) -> pa.RecordBatch:
    """Return rows of a bag of distinct values as joined rows (columns $g, $x, $weight)."""
    columns = {k.name: rows.column(k.name) for k in grouping.keys}
    columns |= {name: _decoded(rows.column(name), kind) for name, kind in bag.columns}
    return pa.record_batch({**columns, WEIGHT: rows.column(WEIGHT)})
