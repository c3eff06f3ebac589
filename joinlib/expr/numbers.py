"""Builds round, floor, ceil, least, greatest and isnan.

Law: half up, away from zero; NaN is the greatest number.
"""

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.arithmetic import arithmetic
from joinlib.expr.cast import cast, convert
from joinlib.expr.compare import compare
from joinlib.expr.logic import both, choose, either, is_null, negate
from joinlib.expr.nodes import Value, call, columnar, compute, constant
from joinlib.expr.rows import Rule, by_rows
from joinlib.expr.text import whole as whole_constant


def _number(name: str, value: Expr) -> Expr:
    if t.is_string(value.type) or value.type == t.NULL:
        return cast(value, t.DOUBLE)
    if not t.is_number(value.type):
        raise SpecError(f"{name} takes a number, {value.sql} is {t.name(value.type)}")
    return value


def round_half_up(value: Expr, digits: Expr | None = None) -> Expr:
    value, count = _number("round", value), 0 if digits is None else whole_constant("round", digits)
    sql = f"round({value.sql}, {count})"
    if t.is_integer(value.type):
        return value if count >= 0 else call(round_integer, (value,), value.type, sql, count)
    if t.is_float(value.type):
        return call(round_float, (value,), value.type, sql, count)
    scale = min(value.type.scale, max(count, 0))
    kind = t.decimal(value.type.precision - value.type.scale + scale + 1, scale)
    if count < 0:
        raise SpecError(f"{sql}: round takes digits >= 0 for DECIMAL")
    return call(convert, (value,), kind, sql, kind, False)


@columnar
def round_integer(value: pa.Array, digits: int) -> pa.Array:
    step = 10**-digits
    return pa.array([None if v is None else _half_up(v, step) for v in value.to_pylist()], value.type)


def _half_up(value: int, step: int) -> int:
    return (1 if value >= 0 else -1) * ((abs(value) + step // 2) // step * step)


@columnar
def round_float(value: pa.Array, digits: int) -> pa.Array:
    """Round by the shortest text of the number, as Java's BigDecimal does: round(2.675, 2) is 2.68."""
    encoded = value.dictionary_encode()
    rounded = [_round(v, digits) for v in encoded.dictionary.to_pylist()]
    return pa.array(rounded, value.type).take(encoded.indices)


def _round(value: float, digits: int) -> float:
    if not np.isfinite(value):
        return value
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), context=_WIDE)
    return float(rounded) + 0.0  # a BigDecimal has no -0.0


_WIDE = Context(prec=700, rounding=ROUND_HALF_UP)  # every double has fewer digits


def whole(name: str, value: Expr) -> Expr:
    """Build floor or ceil: BIGINT of a float, DECIMAL without fraction of a DECIMAL."""
    value = _number(name, value)
    sql = f"{name}({value.sql})"
    if t.is_integer(value.type):
        return cast(value, t.BIGINT)
    if t.is_float(value.type):
        return cast(call(whole_float, (value,), value.type, sql, name), t.BIGINT)
    kind = t.decimal(value.type.precision - value.type.scale + 1, 0)
    return call(whole_decimal, (value,), kind, sql, name, kind)


def whole_float(value: Value, name: str) -> Value:
    """Compute floor or ceil; NaN is 0, as where Java makes it a whole number."""
    found = pc.call_function(name, [value])
    return pc.if_else(pc.is_nan(found), pa.scalar(0.0, found.type), found)


def whole_decimal(value: Value, name: str, kind: pa.DataType) -> Value:
    mode = {"floor": "down", "ceil": "up"}[name]
    wide = value.cast(pa.decimal256(76, value.type.scale))
    return pc.round(wide, ndigits=0, round_mode=mode).cast(kind)


def extreme(name: str, *values: Expr) -> Expr:
    """Build least or greatest, which skip NULLs."""
    sign, result = ("<" if name == "least" else ">"), values[0]
    for value in values[1:]:
        sql = f"{name}({result.sql}, {value.sql})"
        wins = either(is_null(value), both(negate(is_null(result)), negate(compare(sign, value, result))))
        result = choose([wins], [result, value], sql)
    return result


def is_nan(value: Expr) -> Expr:
    """Build isnan, which is FALSE for NULL, as in Spark."""
    value = cast(_number("isnan", value), t.DOUBLE)
    found = call(compute, (value,), t.BOOLEAN, f"isnan({value.sql})", "is_nan")
    return choose(
        [found], [constant(pa.scalar(True), "TRUE"), constant(pa.scalar(False), "FALSE")], found.sql
    )


def positive_remainder(left: Expr, right: Expr) -> Expr:
    """Build pmod: the remainder, never negative for a positive divisor."""
    rest = arithmetic("%", left, right)
    sql = f"pmod({left.sql}, {right.sql})"
    kind = rest.type
    left, right = (cast(e, kind) if not t.is_decimal(kind) else e for e in (left, right))
    again = arithmetic("%", arithmetic("+", rest, right), right)
    zero = constant(pa.scalar(0, t.INT), "0")
    return choose([compare("<", rest, zero)], [cast(again, kind), rest], sql)


def nan_value(value: Expr, otherwise: Expr) -> Expr:
    """Build nanvl: the second where the first is NaN."""
    kind = t.FLOAT if value.type == otherwise.type == t.FLOAT else t.DOUBLE
    value, otherwise = (cast(_number("nanvl", e), kind) for e in (value, otherwise))
    return choose([is_nan(value)], [otherwise, value], f"nanvl({value.sql}, {otherwise.sql})")


def round_half_even(value: Expr, digits: Expr | None = None) -> Expr:
    """Build bround: half to the even neighbour."""
    value, count = _number("bround", value), 0 if digits is None else whole_constant("bround", digits)
    kind = value.type
    if t.is_decimal(kind):
        scale = min(kind.scale, max(count, 0))
        kind = t.decimal(kind.precision - kind.scale + scale + 1, scale)
    sql = f"bround({value.sql}, {count})"
    return call(by_rows, (value,), kind, sql, Rule(_half_even, kind, False, (count,)))


def _half_even(value: Any, digits: int) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return value
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN, context=_WIDE)
    return type(value)(rounded) if not isinstance(value, float) else float(rounded) + 0.0
