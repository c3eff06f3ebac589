"""Finds the conditions of a join without equality that an index can search
by: comparisons between the two inputs.

    a.x < b.y                    a.x < b.y
    a.k BETWEEN b.k AND b.k + c  a.k >= b.k  and  a.k <= b.k + c           (whole numbers: one range of b.k)
    ABS(a.x - b.x) <= c          a.x <= b.x + c  and  a.x >= b.x - c
    a.x - b.x < c                a.x <= b.x + c                            (= c: and a.x >= b.x + c)
    b.t - a.t between l and h    a.t <= b.t - l  and  a.t >= b.t - h       (the time bounds)

Law: what they find contains every pair that matches. Comparisons of 64 bits and time bounds find exactly
those; others are checked again on what is found. So a type of more than 64 bits, whose words tie where its
values differ, is searched with <= instead of <, and a band of doubles is rounded outwards.
"""

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt

from joinlib.expr import Expr, Node, Ref
from joinlib.expr import types as t
from joinlib.expr.bound import Bound
from joinlib.expr.cast import cast
from joinlib.expr.compare import MIRROR, Comparison
from joinlib.expr.nodes import Call, Literal, argument_of, compute
from joinlib.model.joins import IndexCondition
from joinlib.sql.graph import aliases

_LOOSE = {"<": "<=", "<=": "<=", ">": ">=", ">=": ">="}


def index_conditions(
    predicate: Iterable[Expr], bounds: Iterable[Bound], left: str
) -> tuple[IndexCondition, ...]:
    """Translate the conditions to searches of an index. `left`: the alias of the first input."""
    found = [(clause, condition) for clause in predicate for condition in _of_clause(clause, left)]
    numbers = {_pair(condition) for clause, condition in found if _passes_nan(clause) is False}
    kept = [c for clause, c in found if not _passes_nan(clause) or _pair(c) in numbers]
    return (*kept, *(condition for bound in bounds for condition in _times(bound, left)))


def _pair(condition: IndexCondition) -> frozenset[str]:
    return frozenset((condition.left.sql, condition.right.sql))


def _passes_nan(clause: Expr) -> bool | None:
    """Return whether a difference that is NaN, which is more than every number, passes a limit; None for other clauses.

    Where it does, a number has the partner NaN, which no search from below finds, unless another clause fails for it.
    """
    node = clause.node
    assert isinstance(node, Comparison)
    if aliases(node.left) and aliases(node.right):
        return None
    value, sign = (node.left, node.sign) if aliases(node.left) else (node.right, MIRROR[node.sign])
    return sign in (">", ">=") and not t.is_integer(value.type)


def decides(clause: Expr, left: str) -> bool:
    """Whether the index decides the clause exactly: a comparison of a type
    that fits 64 bits; NULLs are never stored.
    """
    node = clause.node
    if not isinstance(node, Comparison) or any(len(aliases(side)) != 1 for side in (node.left, node.right)):
        return False
    kind = t.common(node.left.type, node.right.type)
    found = list(_of_clause(clause, left))
    return kind is not None and exact(kind) and bool(found) and not any(m.shift for m in found)


def _of_clause(clause: Expr, left: str) -> Iterator[IndexCondition]:
    node = clause.node
    if not isinstance(node, Comparison) or node.sign == "<=>":
        return
    sides = aliases(node.left), aliases(node.right)
    if len(sides[0]) == 1 and len(sides[1]) == 1 and sides[0] != sides[1]:
        yield from _plain(node, left) if node.sign != "=" else ()
    elif not sides[1]:
        yield from _band(node.left, node.sign, node.operands[1], left)
    elif not sides[0]:
        yield from _band(node.right, MIRROR[node.sign], node.operands[0], left)


def _plain(node: Comparison, left: str) -> Iterator[IndexCondition]:
    kind = t.common(node.left.type, node.right.type)
    assert kind is not None
    one, two, sign = node.left, node.right, node.sign
    if aliases(one) != {left}:
        one, two, sign = two, one, MIRROR[sign]
    if not exact(kind):
        if sign == "<>":
            return
        sign = _LOOSE[sign]
    if ordered(kind):
        one, two = cast(one, kind), cast(two, kind)
        yield IndexCondition(one, sign, two) if sign == "<>" else _shifted(one, sign, two)


def _shifted(one: Expr, sign: str, two: Expr) -> IndexCondition:
    """Move constants that are added to columns into one shift, so that several comparisons share a dimension.

    < becomes <= of a smaller shift: near the ends of 64 bits a shift saturates, which may find too much but
    misses nothing.
    """
    (left, less), (right, more) = moved(one), moved(two)
    shift = more - less
    if not shift or not -(2**62) < shift < 2**62:
        return IndexCondition(one, sign, two)
    return IndexCondition(left, _LOOSE[sign], right, shift + {"<": -1, ">": 1}.get(sign, 0))


def moved(value: Expr) -> tuple[Expr, int]:
    """Split a value into a column of whole numbers and the constant that is added to it."""
    node = value.node
    known = isinstance(node, Call) and node.kernel is compute and t.is_integer(value.type)
    if not known or node.parameters not in (("add_checked",), ("subtract_checked",)):  # type: ignore[attr-defined]
        return value, 0
    column, by = node.arguments  # type: ignore[attr-defined]
    added = node.parameters == ("add_checked",)  # type: ignore[attr-defined]
    if added and isinstance(column, Literal):
        column, by = by, column
    if not isinstance(column, Ref) or not isinstance(by, Literal) or by.value.as_py() is None:
        return value, 0
    return Expr(column.name, (column.name,), value.type, column), by.value.as_py() * (1 if added else -1)


def _band(value: Expr, sign: str, limit: Node, left: str) -> Iterator[IndexCondition]:
    """Translate one - two < limit and ABS(one - two) <= limit, for whole numbers or doubles."""
    if not isinstance(limit, Literal) or limit.value.as_py() is None:
        return
    inner = argument_of(value.node, "abs_checked")
    sides = _difference(inner or value.node, value.type)
    if sides is None or (inner and sign not in ("<", "<=")):
        return
    (one, two), most = sides, limit.value.as_py()
    least = -most if inner else most
    if aliases(one) != {left}:
        one, two, sign, least, most = two, one, MIRROR[sign], -most, -least
    if inner or sign in ("<", "<=", "="):
        yield from _reached(one, "<=", two, _reach(most, value.type, up=True))
    if inner or sign in (">", ">=", "="):
        yield from _reached(one, ">=", two, _reach(least, value.type, up=False))


def _reached(one: Expr, sign: str, two: Expr, reach: float | None) -> Iterator[IndexCondition]:
    if reach is not None:
        yield IndexCondition(one, sign, two, reach)


def _difference(node: Node, kind: pa.DataType) -> tuple[Expr, Expr] | None:
    """Return one and two of `one - two`, if each reads another input."""
    if not isinstance(node, Call) or node.kernel is not compute or node.parameters != ("subtract_checked",):
        return None
    one, two = (_side(argument, kind) for argument in node.arguments)
    known = t.is_integer(kind) or kind in (t.DOUBLE, t.FLOAT)
    return (one, two) if known and one and two and aliases(one) != aliases(two) else None


def _side(node: Node, kind: pa.DataType) -> Expr | None:
    """Return a node that reads one input as an expression; None if it reads several or is not simple."""
    names = _columns(node)
    if names is None or len({n.partition(".")[0] for n in names}) != 1:
        return None
    return Expr(", ".join(dict.fromkeys(names)), tuple(dict.fromkeys(names)), kind, node)


def _columns(node: Node) -> list[str] | None:
    """The columns a node reads; None if it is not made of columns, constants and kernels alone."""
    if isinstance(node, Ref):
        return [node.name]
    if isinstance(node, Literal):
        return []
    if not isinstance(node, Call):
        return None
    below = [_columns(argument) for argument in node.arguments]
    return None if None in below else [name for names in below if names for name in names]


def _reach(limit: object, kind: pa.DataType, up: bool) -> int | float | None:
    """Convert the end of a band to the type of its values, rounded outwards; None if it does not fit."""
    if not isinstance(limit, int | float | Decimal) or not -(2**63) < limit < 2**63:
        return None
    if t.is_integer(kind):
        return math.floor(limit) if up else math.ceil(limit)
    out = math.inf if up else -math.inf
    # A difference rounded to the limit may be half a step more; FLOAT's steps are 2^29 times as large.
    if kind == t.DOUBLE:
        return math.nextafter(float(limit), out)
    return float(limit) + math.copysign(abs(float(limit)) * 2**-22 + 1e-44, out)


def _times(bound: Bound, left: str) -> Iterator[IndexCondition]:
    """Translate a time bound, whose columns stand in the order of the text: either input may come first."""
    one, two = _time(bound.left), _time(bound.right)
    for limit, sign in ((bound.low_us, "<="), (bound.high_us, ">=")):
        if limit is None:
            continue
        if bound.left.partition(".")[0] == left:
            yield IndexCondition(one, sign, two, -limit)
        else:
            yield IndexCondition(two, MIRROR[sign], one, limit)


def _time(name: str) -> Expr:
    return Expr(name, (name,), t.TIMESTAMP, Ref(name))


def ordered(kind: pa.DataType) -> bool:
    """Whether values of this type map to 64-bit words of the same order."""
    return not t.is_nested(kind) and (
        t.is_number(kind)
        or t.is_string(kind)
        or pt.is_binary(kind)
        or pt.is_boolean(kind)
        or pt.is_temporal(kind)
    )


def exact(kind: pa.DataType) -> bool:
    """Whether different values of this type always have different words."""
    return not (t.is_decimal(kind) or t.is_string(kind) or pt.is_binary(kind))
