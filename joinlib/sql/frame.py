"""Reads the frame of a window function: ROWS, RANGE or GROUPS BETWEEN ... AND ..."""

from decimal import Decimal

from sqlglot import exp

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.nodes import Literal, no_columns
from joinlib.model.over import Frame, OrderKey
from joinlib.sql.compile import compile
from joinlib.sql.scope import Scope

_DAY = 86_400_000_000
_UNITS = {"ROWS": "rows", "RANGE": "range", "GROUPS": "groups"}


def frame_of(spec: exp.Expr, by: tuple[OrderKey, ...], scope: Scope) -> Frame:
    """Return the frame that is written.

    Raises:
        SqlError: if it is not supported.
    """
    unit = str(spec.args.get("kind") or "ROWS").upper()
    if spec.args.get("exclude"):
        raise scope.error("EXCLUDE is not supported", spec)
    ends = []
    for name, turned in (("start", -1), ("end", 1)):
        far, side = spec.args.get(name), spec.args.get(f"{name}_side")
        ends.append(_end("CURRENT ROW" if far is None else far, side, turned, unit, by, scope, spec))
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise scope.error("the frame begins behind its end", spec)
    return Frame(_UNITS[unit], *ends)  # type: ignore[arg-type]


def _end(
    far: exp.Expr | str,
    side: str | None,
    turned: int,
    unit: str,
    by: tuple[OrderKey, ...],
    scope: Scope,
    at: exp.Expr,
) -> int | float | None:
    """Return one end of the frame as a distance from the current row."""
    if isinstance(far, str):
        if far.upper() == "CURRENT ROW":
            return 0
        if (side or "").upper() != ("PRECEDING" if turned < 0 else "FOLLOWING"):
            raise scope.error(f"a frame cannot {'begin' if turned < 0 else 'end'} with {far} {side}", at)
        return None
    sign = -1 if (side or "").upper() == "PRECEDING" else 1
    value = compile(far, scope)
    if unit != "RANGE":
        if not (isinstance(value.node, Literal) and t.is_integer(value.type)):
            raise scope.error(f"{unit} takes a constant whole number, not {value.excerpt}", far)
        return sign * int(value.node.value.as_py())
    if len(by) != 1:
        raise scope.error("RANGE with a distance takes one column of ORDER BY", at)
    return sign * _distance(value, by[0], scope, far)


def _distance(value: Expr, by: OrderKey, scope: Scope, at: exp.Expr) -> int | float:
    """Return a distance in units of the column of ORDER BY."""
    kind = next(
        f.type for s in scope.visible.values() for f in s.table.schema if s.column(f).column == by.column
    )
    if kind == t.DATE and isinstance(value.node, Literal) and t.is_integer(value.type):
        return int(value.node.value.as_py())
    if t.is_time(kind) and value.type == t.INTERVAL:
        micros = int(value.evaluate(no_columns, 1)[0].value)
        if kind != t.DATE:
            return micros
        if micros % _DAY:
            raise scope.error("RANGE over a DATE takes whole days", at)
        return micros // _DAY
    if isinstance(value.node, Literal) and t.is_number(value.type) and t.is_number(kind):
        number = value.node.value.as_py()
        if t.is_float(kind):
            return float(number)
        scaled = Decimal(str(number)).scaleb(kind.scale if t.is_decimal(kind) else 0)
        if scaled == int(scaled):
            return int(scaled)
    wanted = "an INTERVAL of days or less" if t.is_time(kind) else "a constant number of its type"
    raise scope.error(f"RANGE over a {t.name(kind)} takes {wanted}, not {value.excerpt}", at)
