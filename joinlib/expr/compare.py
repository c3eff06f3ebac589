"""=, <>, <, <=, >, >=, <=>, BETWEEN, IN. Law: NaN equals NaN and is greater than every number; -0.0 equals 0.0."""

from dataclasses import dataclass

import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Columns, Expr, Node
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.logic import both, either
from joinlib.expr.nodes import Literal, Value, combine, constant, no_columns

SIGNS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
MIRROR = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
_PLAIN = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """`left sign right`, met in one type. A node of its own: the planner looks for equalities and time bounds."""

    sign: str
    left: Expr  # as written
    right: Expr
    operands: tuple[Node, Node]  # left and right, cast

    def evaluate(self, columns: Columns, rows: int) -> Value:
        left, right = (node.evaluate(columns, rows) for node in self.operands)
        if self.sign == "<=>":
            same = _compare("=", left, right)
            neither = pc.and_(pc.is_null(left), pc.is_null(right))
            return pc.or_(pc.fill_null(same, False), neither)
        return _compare(self.sign, left, right)


def _compare(sign: str, left: Value, right: Value) -> Value:
    if not t.is_float(left.type):
        return _PLAIN[sign](left, right)
    if sign in ("<>", "<=", ">="):
        return pc.invert(_compare({"<>": "=", "<=": ">", ">=": "<"}[sign], left, right))
    if sign == ">":
        left, right, sign = right, left, "<"
    nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
    special = pc.and_(nan_left, nan_right) if sign == "=" else pc.and_not(nan_right, nan_left)
    return pc.or_(_PLAIN[sign](left, right), special)


def compare(sign: str, left: Expr, right: Expr) -> Expr:
    """Compare two values in the type they meet in."""
    sql = f"({left.sql} {sign} {right.sql})"
    kind = t.common(left.type, right.type)
    if kind is None:
        raise SpecError(f"{sign} cannot compare {t.name(left.type)} with {t.name(right.type)}; add a CAST")
    if t.is_nested(kind):
        raise SpecError(f"{sign} cannot compare values of type {t.name(kind)}; compare their fields")
    kind = t.BOOLEAN if kind == t.NULL else kind
    operands = cast(left, kind).node, cast(right, kind).node
    node = Comparison(sign, left, right, operands)
    if all(isinstance(operand, Literal) for operand in operands):
        return constant(node.evaluate(no_columns, 1), sql)
    return combine(node, (left, right), t.BOOLEAN, sql)


def between(value: Expr, low: Expr, high: Expr) -> Expr:
    return both(compare(">=", value, low), compare("<=", value, high))


def one_of(value: Expr, options: list[Expr]) -> Expr:
    """`value IN (options)`: NULL when only a NULL could have made it true."""
    result = compare("=", value, options[0])
    for option in options[1:]:
        result = either(result, compare("=", value, option))
    return result
