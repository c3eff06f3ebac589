"""Computes the rows of the result from the partials of groups.

Law: types and rounding are Spark's; a sum that does not fit its type raises an error.
"""

from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.partial import ROWS
from joinlib.errors import SpecError
from joinlib.expr import Column, Expr
from joinlib.expr import types as t
from joinlib.index import order
from joinlib.model.grouping import AggregateCall, Grouping

_CONTEXT = Context(prec=120, rounding=ROUND_HALF_UP)


def finished(partials: pa.RecordBatch, grouping: Grouping) -> pa.RecordBatch:
    """Return the rows of the result for these groups, by HAVING and the select list.

    The flag of a changelog is not among the columns.

    Raises:
        SpecError: a sum does not fit its type.
    """
    values, kept = rows(partials, grouping)
    return values.filter(kept)


def rows(partials: pa.RecordBatch, grouping: Grouping) -> tuple[pa.RecordBatch, pa.BooleanArray]:
    """Return the select list's columns of every group, and a mask of the groups that pass HAVING."""
    columns: dict[str, Column] = {k.name: partials.column(k.name) for k in grouping.keys}
    columns |= {call.name: _value(call, partials) for call in grouping.calls}
    count = partials.num_rows

    def of(value: Expr) -> pa.Array:
        found = value.evaluate(columns.__getitem__, count)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    kept = pa.repeat(True, count) if grouping.having is None else of(grouping.having).fill_null(False)
    made = [of(value) for _, value in grouping.select]
    return pa.record_batch(made, pa.schema([pa.field(n, v.type) for n, v in grouping.select])), kept


def changes(
    before: pa.RecordBatch, after: pa.RecordBatch, known: pa.BooleanArray, grouping: Grouping
) -> pa.RecordBatch:
    """Return the changelog's rows of groups whose partials changed.

    before, after: the partials, row by row of the same groups. known: whether each group existed before.
    """
    old, was = rows(before, grouping)
    new, now = rows(after, grouping)
    was = pc.and_(was, known)
    other = pa.repeat(False, len(now))
    for a, b in zip(old.columns, new.columns, strict=True):
        other = pc.or_(other, _differ(a, b))
    written = new.filter(pc.and_(now, pc.or_(pc.invert(was), other)))
    gone = old.filter(pc.and_(was, pc.invert(now)))
    flags = pa.array([True] * gone.num_rows + [False] * written.num_rows, pa.bool_())
    both = pa.Table.from_batches([gone, written]).combine_chunks()
    columns = [c.combine_chunks() for c in both.columns]
    return pa.record_batch([*columns, flags], grouping.schema)


def existing(partials: pa.RecordBatch) -> pa.BooleanArray:
    """Return a mask of the groups that have rows."""
    return pc.greater(partials.column(ROWS), 0)


def _differ(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    different = pc.fill_null(pc.not_equal(left, right), False)
    if t.is_float(left.type):
        different = pc.and_(
            different, pc.invert(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
        )
    return pc.or_(different, pc.xor(left.is_null(), right.is_null()))


def _value(call: AggregateCall, partials: pa.RecordBatch) -> pa.Array:
    if call.function == "count":
        return partials.column(ROWS if call.argument is None else f"{call.name}.n")
    if call.function in ("min", "max"):
        found = partials.column(f"{call.name}.m")
        return _float(found).cast(call.type) if t.is_float(call.type) else found
    total = partials.column(f"{call.name}.s")
    if call.function == "sum":
        return _fitting(total, call)
    return _average(total, partials.column(f"{call.name}.n"), call)


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
    return pa.array([None if s is None else _quotient(s, n, unit) for s, n in pairs], call.type)


def _quotient(total: Decimal, count: int, unit: Decimal) -> Decimal:
    return _CONTEXT.divide(total, Decimal(count)).quantize(unit, context=_CONTEXT)


def _float(codes: pa.Array) -> pa.Array:
    """Return the doubles that these order-preserving integers encode."""
    found = order.doubles(codes.fill_null(0).to_numpy(zero_copy_only=False))
    return pa.array(found, mask=codes.is_null().to_numpy(zero_copy_only=False))
