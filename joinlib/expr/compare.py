"""Builds =, <>, <, <=, >, >=, <=>, BETWEEN and IN.

Law: NaN equals NaN and is greater than every number; -0.0 equals 0.0.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Columns, Expr, Node
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.equality import compared
from joinlib.expr.logic import Case, Junction, both, either
from joinlib.expr.nodes import Call, Literal, Value, call, combine, constant, no_columns
from joinlib.expr.rows import Rule, by_rows

MIRROR = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
_PLAIN = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """`left sign right`, compared in one type. It is a node of its own since the planner looks for it."""

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


def same(left: Value, right: Value) -> Value:
    """Return where two values of one type are equal keys; NULL equals nothing."""
    return pc.fill_null(_compare("=", left, right), False)


def compare(sign: str, left: Expr, right: Expr) -> Expr:
    """Compare two values in their common type.

    Raises:
        SpecError: if they have none.
    """
    sql = f"({left.sql} {sign} {right.sql})"
    kind = t.common(left.type, right.type)
    if kind is None:
        raise SpecError(f"{sign} cannot compare {t.name(left.type)} with {t.name(right.type)}; add a CAST")
    if t.is_nested(kind):
        return _nested(sign, left, right, kind, sql)
    kind = t.BOOLEAN if kind == t.NULL else kind
    operands = cast(left, kind).node, cast(right, kind).node
    node = Comparison(sign, left, right, operands)
    if all(isinstance(operand, Literal) for operand in operands):
        return constant(node.evaluate(no_columns, 1), sql)
    return combine(node, (left, right), t.BOOLEAN, sql)


def _nested(sign: str, left: Expr, right: Expr, kind: pa.DataType, sql: str) -> Expr:
    """Compare ARRAYs or STRUCTs. This is no `Comparison`: they are no keys."""
    if t.is_map(kind):
        raise SpecError(f"{sign} cannot compare values of type MAP; compare map_entries of them")
    both_ = cast(left, kind), cast(right, kind)
    if sign == "<=>":
        return call(by_rows, both_, t.BOOLEAN, sql, Rule(_same_or_null, t.BOOLEAN, True))
    return call(by_rows, both_, t.BOOLEAN, sql, Rule(compared, t.BOOLEAN, more=(sign,)))


def _same_or_null(left: object, right: object) -> bool:
    return compared(left, right, "<=>")


def check(node: Node) -> None:
    """Raise SpecError if a constant that every row needs cannot be computed:
    `1 / 0`, but not in `IF(b, 1 / 0, x)`.
    """
    asked: tuple[Node, ...] = ()
    if isinstance(node, Call):
        asked = node.arguments
        if all(isinstance(a, Literal) for a in asked):
            node.evaluate(no_columns, 1)
    elif isinstance(node, Comparison):
        asked = node.operands
    elif isinstance(node, Junction):
        asked = (node.parts[0].node,)
    elif isinstance(node, Case):
        asked = node.conditions[:1]
    for part in asked:
        check(part)


def between(value: Expr, low: Expr, high: Expr) -> Expr:
    return both(compare(">=", value, low), compare("<=", value, high))


def one_of(value: Expr, options: list[Expr]) -> Expr:
    """Build `value IN (options)`: NULL when only a NULL could have made it true.

    Constants are searched in one pass.
    """
    kind = value.type
    for option in options:
        kind = t.common(kind, option.type) or t.NULL
    constants = [o for o in options if isinstance(o.node, Literal)]
    if len(constants) < len(options) or t.is_float(kind) or t.is_nested(kind) or kind == t.NULL:
        return _any([compare("=", value, option) for option in options])
    found = [cast(o, kind).node.evaluate(no_columns, 1) for o in constants]
    sql = f"({value.sql} IN ({', '.join(o.sql for o in options)}))"
    return call(is_one_of, (cast(value, kind),), t.BOOLEAN, sql, *found)


def _any(parts: list[Expr]) -> Expr:
    """Combine the parts by OR as a balanced tree, so that a long list does not nest deeply."""
    half = len(parts) // 2
    return parts[0] if len(parts) == 1 else either(_any(parts[:half]), _any(parts[half:]))


def is_one_of(value: Value, *options: pa.Scalar) -> Value:
    known = pa.array([o for o in options if o.is_valid], value.type)
    found = pc.is_in(value, value_set=known)
    unknown = pc.is_null(value) if len(known) == len(options) else pc.invert(found)
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)
