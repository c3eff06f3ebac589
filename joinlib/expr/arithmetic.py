"""Builds plus, minus, times, divide and modulo.

Law: Spark's result types; overflow and division by zero raise.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.decimals import decimal_arithmetic
from joinlib.expr.nodes import Value, call, columnar, compute

_KERNELS = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked", "/": "divide_checked"}


def arithmetic(sign: str, left: Expr, right: Expr) -> Expr:
    """Build `left sign right` for numbers; sign is + - * / % or div.

    Raises:
        SpecError: if a side is not a number.
    """
    sql = f"({left.sql} {sign} {right.sql})"
    left, right = _numbers(sign, left, right)
    kind = t.widest_number(left.type, right.type)
    if sign == "/" and t.is_integer(kind):
        kind = t.DOUBLE
    if t.is_decimal(kind):
        return decimal_arithmetic(sign, left, right, sql)
    left, right = cast(left, kind), cast(right, kind)
    if sign == "div":
        if not t.is_integer(kind):
            raise SpecError(f"div takes whole numbers, {sql} has {t.name(kind)}; write CAST(... AS BIGINT)")
        left, right = cast(left, t.BIGINT), cast(right, t.BIGINT)
        return call(compute, (left, right), t.BIGINT, sql, "divide_checked")
    if sign == "%":
        return call(remainder, (left, right), kind, sql)
    return call(compute, (left, right), kind, sql, _KERNELS[sign])


def _numbers(sign: str, left: Expr, right: Expr) -> tuple[Expr, Expr]:
    def number(value: Expr, other: Expr) -> Expr:
        if value.type == t.NULL:
            return cast(value, other.type if t.is_number(other.type) else t.DOUBLE)
        if t.is_string(value.type) and t.is_number(other.type):
            return cast(value, t.BIGINT if t.is_integer(other.type) else t.DOUBLE)
        if not t.is_number(value.type):
            raise SpecError(f"{sign} takes numbers, {value.sql} is {t.name(value.type)}")
        return value

    return number(left, right), number(right, left)


@columnar
def remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """Compute the remainder, which has the sign of the dividend, as in Java."""
    if pc.any(pc.equal(right, 0)).as_py() and pc.any(pc.and_(pc.equal(right, 0), pc.is_valid(left))).as_py():
        raise ZeroDivisionError("divide by zero")
    nulls = np.asarray(pc.or_(pc.is_null(left), pc.is_null(right)))
    dividend = np.where(nulls, 0, left.fill_null(0).to_numpy(zero_copy_only=False))
    divisor = np.where(nulls, 1, right.fill_null(1).to_numpy(zero_copy_only=False))
    with np.errstate(invalid="ignore"):
        return pa.array(np.fmod(dividend, divisor), left.type, mask=nulls)


def minus(value: Expr) -> Expr:
    if t.is_string(value.type):
        value = cast(value, t.DOUBLE)
    sql = f"(- {value.sql})"
    if not (t.is_number(value.type) or value.type in (t.INTERVAL, t.NULL)):
        raise SpecError(f"- takes numbers, {value.sql} is {t.name(value.type)}")
    if value.type == t.INTERVAL:
        return call(negative_interval, (value,), t.INTERVAL, sql)
    return call(compute, (value,), value.type, sql, "negate_checked")


def negative_interval(value: Value) -> Value:
    return pc.negate_checked(value.cast(pa.int64())).cast(t.INTERVAL)


def absolute(value: Expr) -> Expr:
    if t.is_string(value.type):
        value = cast(value, t.DOUBLE)
    if not t.is_number(value.type):
        raise SpecError(f"abs takes numbers, {value.sql} is {t.name(value.type)}")
    return call(compute, (value,), value.type, f"abs({value.sql})", "abs_checked")
