"""Computes the rows of the result from the partials of groups.

Law: types and rounding are Spark's; a sum that does not fit its type raises an error, or its group is left out and kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.keys import differ
from joinlib.aggregate.partial import ROWS
from joinlib.apart import KeepFailed, set_aside
from joinlib.arrays import I64
from joinlib.errors import SpecError
from joinlib.expr import Column, Expr, ref
from joinlib.expr import types as t
from joinlib.expr.packed import unpack
from joinlib.index import order
from joinlib.model.grouping import AggregateCall, Grouping
from joinlib.model.inputs import WEIGHT
from joinlib.route.content import consolidated, weighing
from joinlib.route.maps import flat

_NOTHING: MappingProxyType[str, pa.Array] = MappingProxyType({})
_CONTEXT = Context(prec=120, rounding=ROUND_HALF_UP)


Found = Mapping[str, pa.Array]  # values that are computed from bags, by call


def finished(
    partials: pa.RecordBatch, grouping: Grouping, found: Found = _NOTHING, failed: KeepFailed | None = None
) -> pa.RecordBatch:
    """Return the rows of the result for these groups, by HAVING and the select list, without a weight.

    Groups from which all rows have gone are left out. failed: takes groups that have no result.

    Raises:
        SpecError: a group has no result, such as a sum that does not fit its type, and nothing takes it.
    """
    all_ = pa.repeat(True, partials.num_rows)
    exists = existing(partials) if grouping.changes and grouping.keys else all_
    return _visible(Then(partials, found, exists), grouping, failed)[0]


def rows(
    partials: pa.RecordBatch, grouping: Grouping, found: Found = _NOTHING
) -> tuple[pa.RecordBatch, pa.Array]:
    """Return the select list's columns of the groups that pass HAVING, and which groups these are.

    Of others nothing is computed: in 10 / sum(v) ... HAVING sum(v) <> 0 that would fail.
    """
    columns: dict[str, Column] = {k.name: partials.column(k.name) for k in grouping.keys}
    for call in grouping.asked:
        columns[call.name] = found[call.name] if call.name in found else _value(call, partials)
    at = pa.array(np.arange(partials.num_rows))
    if grouping.having is not None:
        kept = grouping.having.evaluate(columns.__getitem__, len(at))
        at = pc.indices_nonzero(kept.fill_null(False))
        columns = {name: column.take(at) for name, column in columns.items()}

    def of(value: Expr) -> pa.Array:
        found = value.evaluate(columns.__getitem__, len(at))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    made = [of(value) for _, value in grouping.select]
    return pa.record_batch(made, pa.schema([pa.field(n, v.type) for n, v in grouping.select])), at


@dataclass(frozen=True)
class Then:
    """Groups at one moment: their partials, what their bags give, and whether each of them exists."""

    partials: pa.RecordBatch
    found: Found
    exists: pa.BooleanArray


def changes(
    before: Then, after: Then, grouping: Grouping, failed: KeepFailed | None = None
) -> pa.RecordBatch:
    """Return the changes of the result, row by row of the same groups: -1 for rows that are taken back, then +1.

    failed: takes groups that have no result, or that had none, with such weights.
    """
    was_failed, now_failed = (failed and weighing(failed, amount) for amount in (-1, 1))
    (old, was), (new, now) = _visible(before, grouping, was_failed), _visible(after, grouping, now_failed)
    _, left, right = np.intersect1d(was, now, assume_unique=True, return_indices=True)
    same = np.ones(len(left), bool)
    for a, b in zip(old.columns, new.columns, strict=True):
        same &= ~differ(a.take(pa.array(left)), b.take(pa.array(right))).to_numpy(zero_copy_only=False)
    gone = old.take(pa.array(np.setdiff1d(np.arange(len(was)), left[same])))
    come = new.take(pa.array(np.setdiff1d(np.arange(len(now)), right[same])))
    weights = pa.array([-1] * gone.num_rows + [1] * come.num_rows, pa.int64())
    found = pa.concat_batches([gone, come]).append_column(pa.field(WEIGHT, pa.int64()), weights)
    return found if _told_apart(grouping) else consolidated(found)


def _told_apart(grouping: Grouping) -> bool:
    """Return whether rows of different groups differ, so that none takes back what another adds."""
    shown = {value.column for _, value in grouping.select}
    return all(key.name in shown for key in grouping.keys)


def _visible(then: Then, grouping: Grouping, failed: KeepFailed | None) -> tuple[pa.RecordBatch, I64]:
    """Return the result's rows of the groups that exist and pass HAVING, and which groups these are.

    Of others nothing is computed: 1 / count(*) has no value where there are no rows.
    """
    at = pc.indices_nonzero(then.exists)
    try:
        values, kept = _some(then, at, grouping)
    except SpecError:
        if failed is None:
            raise
        at = _sound(then, at, grouping, failed)
        values, kept = _some(then, at, grouping)
    return values, at.take(kept).to_numpy().astype(np.int64)


def _some(then: Then, at: pa.Array, grouping: Grouping) -> tuple[pa.RecordBatch, pa.Array]:
    return rows(then.partials.take(at), grouping, {n: v.take(at) for n, v in then.found.items()})


def _sound(then: Then, at: pa.Array, grouping: Grouping, failed: KeepFailed) -> pa.Array:
    """Return those of these groups that have a result; give the others to `failed`."""

    def compute(start: int, stop: int) -> object:
        return _some(then, at.slice(start, stop - start), grouping)

    def told(spots: I64) -> pa.RecordBatch:
        return _told(then, at.take(pa.array(spots)), grouping)

    return at.filter(pa.array(set_aside(len(at), compute, SpecError, told, failed)))


def _told(then: Then, at: pa.Array, grouping: Grouping) -> pa.RecordBatch:
    """Return keys and aggregates of groups, by their texts; NULL stands for a sum that does not fit its type."""
    partials = then.partials.take(at)
    columns: dict[str, pa.Array] = {}
    for key in grouping.keys:
        column = partials.column(key.name)
        value = unpack(ref(key.name, key.type), key.kind or key.type)
        columns[key.sql] = value.evaluate({key.name: column}.__getitem__, len(at))
    for call in grouping.asked:
        kept = then.found.get(call.name)
        columns[call.sql] = kept.take(at) if kept is not None else _known(call, partials)
    return pa.record_batch([flat(column) for column in columns.values()], list(columns))


def _known(call: AggregateCall, partials: pa.RecordBatch) -> pa.Array:
    """Return the values of a call; NULL where one does not fit its type."""
    try:
        return _value(call, partials)
    except SpecError:
        if partials.num_rows == 1:
            return pa.nulls(1, call.type)
    half = partials.num_rows // 2
    halves = (partials.slice(0, half), partials.slice(half))
    return pa.concat_arrays([_known(call, some).cast(call.type) for some in halves])


def existing(partials: pa.RecordBatch) -> pa.BooleanArray:
    """Return a mask of the groups that have rows."""
    return pc.greater(partials.column(ROWS), 0)


def _value(call: AggregateCall, partials: pa.RecordBatch) -> pa.Array:
    if call.function == "count":
        return partials.column(ROWS if call.argument is None else call.partial("n"))
    if call.function in ("min", "max"):
        found = partials.column(call.partial("m"))
        return _float(found).cast(call.type) if t.is_float(call.type) else found
    total = partials.column(call.partial("s"))
    if call.function == "sum":
        if call.partial("n") in partials.schema.names:  # all values may have gone
            none = pc.equal(partials.column(call.partial("n")), 0)
            total = pc.if_else(none, pa.scalar(None, total.type), total)
        return _fitting(total, call)
    return _average(total, partials.column(call.partial("n")), call)


def _fitting(total: pa.Array, call: AggregateCall) -> pa.Array:
    try:
        return total.cast(call.type)
    except pa.ArrowInvalid as error:
        raise SpecError(
            f"{call.sql} is too large for {t.name(call.type)}; CAST its argument to a wider type"
        ) from error


def _average(total: pa.Array, counts: pa.Array, call: AggregateCall) -> pa.Array:
    if t.is_float(call.type):
        counted = pc.if_else(pc.equal(counts, 0), pa.scalar(None, pa.int64()), counts)
        return pc.divide(total.cast(pa.float64()), counted.cast(pa.float64()))
    unit = Decimal(1).scaleb(-call.type.scale)
    pairs = zip(total.to_pylist(), counts.to_pylist(), strict=True)
    found = [_quotient(s, n, unit) if s is not None and n else None for s, n in pairs]
    return _fitting(pa.array(found, pa.decimal256(76, call.type.scale)), call)


def _quotient(total: Decimal, count: int, unit: Decimal) -> Decimal:
    return _CONTEXT.divide(total, Decimal(count)).quantize(unit, context=_CONTEXT)


def _float(codes: pa.Array) -> pa.Array:
    """Return the doubles that these order-preserving integers encode."""
    found = order.doubles(codes.fill_null(0).to_numpy(zero_copy_only=False))
    return pa.array(found, mask=codes.is_null().to_numpy(zero_copy_only=False))
