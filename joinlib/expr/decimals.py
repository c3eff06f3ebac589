"""Computes with DECIMAL. Law: Spark's precision and scale, rounded half up; more than 38 digits raise.

Sums and products run in Arrow's 256-bit decimals; quotients, remainders and products too wide for those run
in Python, about 1 µs a row.
"""

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, Overflow

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nodes import Literal, call, columnar

_WIDE = 76  # digits of a 256-bit decimal
_CONTEXT = Context(prec=120, rounding=ROUND_HALF_UP, traps=[Overflow])


def result_type(sign: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return Spark's type of `left sign right`."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    whole = max(p1 - s1, p2 - s2)
    if sign in "+-":
        return t.decimal(whole + max(s1, s2) + 1, max(s1, s2))
    if sign == "*":
        return t.decimal(p1 + p2 + 1, s1 + s2)
    if sign == "/":
        scale = max(6, s1 + p2 + 1)
        return t.decimal(p1 - s1 + s2 + scale, scale)
    return t.decimal(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def decimal_arithmetic(sign: str, left: Expr, right: Expr, sql: str) -> Expr:
    left, right = _decimal(left), _decimal(right)
    if sign == "div":
        return call(exact, (left, right), t.BIGINT, sql, sign, t.BIGINT)
    kind = result_type(sign, left.type, right.type)
    return call(exact, (left, right), kind, sql, sign, kind)


def _decimal(value: Expr) -> Expr:
    """Convert a whole number to DECIMAL: a constant with just its digits,
    others with all that their type can have.
    """
    if isinstance(value.node, Literal) and t.is_integer(value.type) and value.node.value.is_valid:
        return cast(value, pa.decimal128(len(str(abs(value.node.value.as_py()))), 0))
    return cast(value, t.as_decimal(value.type))


def exact(left: pa.Array, right: pa.Array, sign: str, kind: pa.DataType) -> pa.Array:
    """Compute with Arrow or Python, by the width of the operands; see the module."""
    width = left.type.precision + right.type.precision + 1
    if sign in "+-*" and width <= _WIDE:
        return _arrow(left, right, _ARROW[sign], kind)
    return _python(left, right, _PYTHON[sign], kind)


_ARROW = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def _arrow(left: pa.Array, right: pa.Array, kernel: Callable[..., pa.Array], kind: pa.DataType) -> pa.Array:
    def wide(value: pa.Array) -> pa.Array:
        return value.cast(pa.decimal256(value.type.precision, value.type.scale))

    return narrow(kernel(wide(left), wide(right)), kind)


def narrow(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Round half up to the type's scale; digits that do not fit raise."""
    if value.type.scale > kind.scale:
        value = value.cast(pa.decimal256(_WIDE, value.type.scale))
        value = pc.round(value, ndigits=kind.scale, round_mode="half_towards_infinity")
    return value.cast(kind)


@columnar
def _each(left: pa.Array, right: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([left, right], ["l", "r"])


def _python(
    left: pa.Array, right: pa.Array, of: Callable[[Decimal, Decimal], Decimal], kind: pa.DataType
) -> pa.Array:
    pairs = _each(left, right)
    many = [pairs] if isinstance(pairs, pa.Scalar) else pairs
    values = [_one(p["l"].as_py(), p["r"].as_py(), of, kind) for p in many]
    return pa.scalar(values[0], kind) if isinstance(pairs, pa.Scalar) else pa.array(values, kind)


def _one(
    left: Decimal | None, right: Decimal | None, of: Callable[[Decimal, Decimal], Decimal], kind: pa.DataType
) -> Decimal | int | None:
    if left is None or right is None:
        return None
    value = of(left, right)
    if kind == t.BIGINT:
        return int(value)
    return value.quantize(Decimal(1).scaleb(-kind.scale), context=_CONTEXT)


def _divide(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise ZeroDivisionError("divide by zero")
    return _CONTEXT.divide(left, right)


def _modulo(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise ZeroDivisionError("divide by zero")
    return _CONTEXT.remainder(left, right)


def _whole(left: Decimal, right: Decimal) -> Decimal:
    return _divide(left, right).to_integral_value(ROUND_DOWN)


_PYTHON: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _CONTEXT.add, "-": _CONTEXT.subtract, "*": _CONTEXT.multiply, "/": _divide, "%": _modulo, "div": _whole,
}  # fmt: skip
