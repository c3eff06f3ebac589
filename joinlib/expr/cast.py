"""Builds CAST and TRY_CAST.

Law: every conversion gives NULL where it fails; CAST then raises, TRY_CAST does not.

Text is read and written by `joinlib.expr.text_values`, one distinct value at a time.
"""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.nodes import Value, call, columnar
from joinlib.expr.text_values import from_decimal, from_text, to_text

SECOND, DAY = 1_000_000, 86_400_000_000  # in microseconds
_LIMITS = {k: np.iinfo(k.to_pandas_dtype()) for k in (t.TINYINT, t.SMALLINT, t.INT, t.BIGINT)}


def cast(value: Expr, kind: pa.DataType, safe: bool = False) -> Expr:
    """Convert the value to another type; return it unchanged if it has that type. `safe` means TRY_CAST.

    Raises:
        SpecError: if there is no such conversion.
    """
    if value.type == kind:
        return value
    word = "TRY_CAST" if safe else "CAST"
    sql = f"{word}({value.sql} AS {t.name(kind)})"
    if not castable(value.type, kind):
        raise SpecError(f"{t.name(value.type)} cannot be cast to {t.name(kind)}: {value.sql}")
    return call(convert, (value,), kind, sql, kind, safe)


def castable(source: pa.DataType, kind: pa.DataType) -> bool:
    """Whether there is a conversion between these types."""
    if source == t.NULL or source == kind:
        return True
    if t.is_nested(source):
        return kind == t.STRING or _castable_parts(source, kind)
    if t.BINARY in (source, kind):
        return t.is_string(source) or t.is_string(kind)
    if t.is_string(source) or t.is_string(kind):
        return not t.is_nested(kind) and t.INTERVAL not in (source, kind)
    if source == t.BOOLEAN or kind == t.BOOLEAN:
        return t.is_number(source) or t.is_number(kind)
    if t.is_time(source) and t.is_time(kind):
        return True
    if t.is_number(source) and t.is_number(kind):
        return True
    return (source == t.TIMESTAMP and t.is_number(kind)) or (t.is_number(source) and kind == t.TIMESTAMP)


def _castable_parts(source: pa.DataType, kind: pa.DataType) -> bool:
    pairs = t.parts(source), t.parts(kind)
    same = type(source) is type(kind) and len(pairs[0]) == len(pairs[1])
    return same and all(castable(a, b) for a, b in zip(*pairs))


@columnar
def convert(value: pa.Array, kind: pa.DataType, safe: bool) -> pa.Array:
    """The kernel of CAST and, with `safe`, of TRY_CAST."""
    if t.is_nested(value.type):
        return nested_text(value) if kind == t.STRING else _convert_parts(value, kind, safe)
    if t.is_float(value.type) and t.is_decimal(kind):
        value = _only(value, pc.is_finite(value))  # NaN and infinities are NULL, as in Spark
    result = _try(value, kind)
    if not safe and result.null_count > value.null_count:
        malformed = t.is_string(value.type)
        raise ValueError("malformed" if malformed else "overflow")
    return result


def _convert_parts(value: pa.Array, kind: pa.DataType, safe: bool) -> pa.Array:
    """Convert what is in a nested value."""
    nulls = value.is_null() if value.null_count else None
    if t.is_struct(kind):
        fields = [convert(part, f.type, safe) for part, f in zip(value.flatten(), kind)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)
    if pa.types.is_map(kind):
        keys, items = (convert(p, k, safe) for p, k in zip((value.keys, value.items), t.parts(kind)))
        return pa.MapArray.from_arrays(_offsets(value, nulls), keys, items, kind)
    elements = convert(value.values, kind.value_type, safe)
    return pa.ListArray.from_arrays(_offsets(value, nulls), elements, kind)


def _offsets(value: pa.Array, nulls: pa.Array | None) -> pa.Array:
    if nulls is None:
        return value.offsets
    return pa.array(value.offsets.to_numpy(), mask=np.append(nulls.to_numpy(zero_copy_only=False), False))


def nested_text(value: pa.Array) -> pa.Array:
    """Write ARRAYs, STRUCTs and MAPs: [1, null], {1, a}, {a -> 1}."""
    if t.is_struct(value.type):
        rows: list[str | None] = ["{" + ", ".join(row) + "}" for row in zip(*map(_written, value.flatten()))]
    else:
        keys = _written(value.keys) if pa.types.is_map(value.type) else None
        parts = _written(value.items if keys else value.values)
        parts = [f"{k} -> {p}" for k, p in zip(keys, parts)] if keys else parts
        ends = value.offsets.to_pylist()
        sides = "{}" if pa.types.is_map(value.type) else "[]"
        rows = [sides[0] + ", ".join(parts[a:b]) + sides[1] for a, b in pairwise(ends)]
    return pa.array(rows, t.STRING, mask=np.asarray(value.is_null()))


def _written(value: pa.Array) -> list[str]:
    return ["null" if text is None else text for text in convert(value, t.STRING, False).to_pylist()]


def _try(value: pa.Array, kind: pa.DataType) -> pa.Array:
    source = value.type
    if source == kind:
        return value
    if source == t.NULL:
        return pa.nulls(len(value), kind)
    if t.is_text(source) or t.is_text(kind):
        return _texts(value, kind)
    if source == t.BOOLEAN:
        return _try(value.cast(t.TINYINT), kind)
    if kind == t.BOOLEAN:
        return pc.not_equal(value, pa.scalar(0).cast(source))
    if t.is_time(source) and t.is_time(kind):
        return _times(value, kind)
    if t.is_timestamp(source):
        return _from_timestamp(value, kind)
    if kind == t.TIMESTAMP:
        return _to_timestamp(value)
    return _numbers(value, kind)


def _texts(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert from or to STRING or BINARY."""
    source = value.type
    if source == t.BINARY and t.is_string(kind):
        return pa.array(
            [None if v is None else v.decode("utf-8", "replace") for v in value.to_pylist()], kind
        )
    if t.is_text(source):
        return value.cast(kind) if t.is_text(kind) else from_text(value, kind)
    return to_text(value)


def _times(value: pa.Array, kind: pa.DataType) -> pa.Array:
    if kind == t.DATE:
        return pc.floor_temporal(value.cast(pa.int64()).cast(t.TIMESTAMP_NTZ), unit="day").cast(t.DATE)
    if value.type == t.DATE:
        value = value.cast(t.TIMESTAMP_NTZ)
    return value.cast(pa.int64()).cast(kind)


def _from_timestamp(value: pa.Array, kind: pa.DataType) -> pa.Array:
    micros = value.cast(pa.int64())
    if t.is_integer(kind):
        return _numbers(_floor_div(micros, SECOND), kind)
    if t.is_float(kind):
        return pc.divide(micros.cast(t.DOUBLE, safe=False), float(SECOND)).cast(kind, safe=False)
    millionth = pa.scalar(Decimal("0.000001"), pa.decimal256(7, 6))
    return _to_decimal(pc.multiply(micros.cast(pa.decimal256(19, 0)), millionth), kind)


def _floor_div(value: pa.Array, by: int) -> pa.Array:
    nulls = np.asarray(value.is_null())
    return pa.array(value.fill_null(0).to_numpy() // by, pa.int64(), mask=nulls)


def _to_timestamp(value: pa.Array) -> pa.Array:
    if t.is_integer(value.type):
        seconds = value.cast(pa.int64())
        fits = pc.less_equal(pc.abs(seconds), (2**63 - 1) // SECOND)
        return pc.multiply(_only(seconds, fits), SECOND).cast(t.TIMESTAMP)
    if t.is_decimal(value.type):
        wide = value.cast(pa.decimal256(value.type.precision, value.type.scale))
        micros = pc.multiply(wide, pa.scalar(Decimal(SECOND), pa.decimal256(7, 0)))
    else:
        micros = pc.multiply(value.cast(t.DOUBLE), float(SECOND))
    return _numbers(micros, t.BIGINT).cast(t.TIMESTAMP)


def _numbers(value: pa.Array, kind: pa.DataType) -> pa.Array:
    if t.is_float(kind):
        return from_decimal(value, kind) if t.is_decimal(value.type) else value.cast(kind, safe=False)
    if t.is_decimal(kind):
        return _to_decimal(value, kind)
    limits = _LIMITS[kind]
    if pa.types.is_decimal(value.type):
        value = _whole(value)
        low, high = (pa.scalar(int(n)).cast(pa.decimal256(20, 0)) for n in (limits.min, limits.max))
        return _only(value, _within(value, low, high)).cast(kind)
    if t.is_float(value.type):
        value = pc.trunc(value.cast(t.DOUBLE))
        fits = pc.and_(pc.greater_equal(value, float(limits.min)), pc.less(value, float(limits.max) + 1.0))
        if kind != t.BIGINT:
            fits = pc.and_(
                pc.greater_equal(value, float(limits.min)), pc.less_equal(value, float(limits.max))
            )
        return _only(value, fits).cast(kind)
    if limits.min <= _LIMITS[value.type].min:
        return value.cast(kind)
    return _only(value, _within(value, int(limits.min), int(limits.max))).cast(kind)


def _whole(value: pa.Array) -> pa.Array:
    """Truncate a decimal to a whole number."""
    wide = value.cast(pa.decimal256(76, value.type.scale))
    return pc.round(wide, ndigits=0, round_mode="towards_zero").cast(pa.decimal256(76 - value.type.scale, 0))


def _to_decimal(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Round half up; NULL where the digits do not fit."""
    if t.is_float(value.type):
        return _float_to_decimal(value, kind)
    if t.is_integer(value.type):
        value = value.cast(pa.decimal256(20, 0))
    scale = max(value.type.scale, kind.scale)
    wide = value.cast(pa.decimal256(76, scale))
    wide = pc.round(wide, ndigits=kind.scale, round_mode="half_towards_infinity")
    limit = pa.scalar(Decimal(10) ** (kind.precision - kind.scale), wide.type)
    return _only(wide, pc.less(pc.abs(wide), limit)).cast(kind)


def _float_to_decimal(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert by the shortest text of the float, as Java's BigDecimal.valueOf does."""
    return from_text(to_text(value), kind)


def _within(value: pa.Array, low: object, high: object) -> pa.Array:
    return pc.and_(pc.greater_equal(value, low), pc.less_equal(value, high))


def _only(value: pa.Array, mask: Value) -> pa.Array:
    """The value where mask is true, else NULL."""
    return pc.if_else(mask, value, pa.scalar(None, value.type))
