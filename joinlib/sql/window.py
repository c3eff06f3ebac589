"""Reads one window function: f(...) OVER (...).

Law: types are Spark's; what a function reads are plain columns.
"""

from collections.abc import Mapping
from typing import Any, get_args

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nodes import Literal, no_columns
from joinlib.model.over import RUNNING, WHOLE, Frame, Framed, OrderKey, OverCall, Ranking
from joinlib.sql.calls import result_type
from joinlib.sql.canonical import with_text
from joinlib.sql.compile import compile
from joinlib.sql.frame import frame_of
from joinlib.sql.scope import Scope
from joinlib.sql.supported import written

SAME = {
    "mean": "avg",
    "first": "first_value",
    "last": "last_value",
    "any_value": "first_value",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "$session_start": "session_start",
    "$session_end": "session_end",
}
_RANKING, _FRAMED = get_args(Ranking), get_args(Framed)
FUNCTIONS = tuple(name for name in (*_RANKING, *_FRAMED) if not name.startswith("session"))
_VALUES = ("lag", "lead", "first_value", "last_value", "nth_value")
_FILTERED = _FRAMED
_NUMBERED = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}  # which argument is a number
_ORDERED = {*_RANKING, "first_value", "last_value", "nth_value"}  # without ORDER BY they would be arbitrary
Named = Mapping[str, exp.Window]


def call_of(node: exp.Window, named: Named, name: str, scope: Scope) -> tuple[OverCall, tuple[str, ...]]:
    """Return a window function, and the columns of its PARTITION BY. `named`: windows of the WINDOW clause.

    Raises:
        SqlError: if it is not supported, or not in this form.
    """
    partition, order, spec = _parts(node, named, scope)
    by = tuple(_key(item, scope) for item in order)
    call, condition, nulls = _bare(node.this, scope)
    function = SAME.get(str(call.name).lower(), str(call.name).lower())
    if function not in _RANKING and function not in _FRAMED:
        raise scope.error(f"{call.name} is not supported with OVER; use one of {', '.join(FUNCTIONS)}", call)
    if not by and function in _ORDERED and str(call.name).lower() != "any_value":
        raise scope.error(f"{call.name} depends on the order of rows; write OVER (... ORDER BY ...)", node)
    frame = frame_of(spec, by, scope) if spec is not None else RUNNING if by else WHOLE
    arguments, ignoring = _arguments(call, function, scope)
    if (nulls or ignoring) and function not in _VALUES:
        raise scope.error(f"IGNORE NULLS is not supported in {call.name}", node)
    made = _made(function, arguments, call, name, by, frame, scope)
    if condition is not None and function not in _FILTERED:
        raise scope.error(f"FILTER is only allowed after an aggregate, not after {call.name}", condition)
    found = OverCall(
        **made,
        sql="",
        ignore_nulls=nulls or ignoring,
        condition=None if condition is None else column(condition, scope)[0],
    )
    parts = tuple(column(item, scope)[0] for item in partition)
    first = _kind(by[0].column, scope) if by else None
    return with_text(found, parts, first), parts


def _parts(
    node: exp.Window, named: Named, scope: Scope
) -> tuple[list[exp.Expr], list[exp.Expr], exp.Expr | None]:
    """Return PARTITION BY, ORDER BY and the frame, each from the WINDOW clause if it is not written here."""
    base = node.args.get("alias")
    if isinstance(node.this, exp.Identifier):
        base = base if isinstance(base, exp.Identifier) else None
    partition, order, spec = (
        node.args.get("partition_by") or [],
        node.args.get("order"),
        node.args.get("spec"),
    )
    found: tuple[list[exp.Expr], list[exp.Expr], exp.Expr | None] = (
        list(partition),
        list(order.expressions) if order else [],
        spec,
    )
    if base is None:
        return found
    window = named.get(str(base.name).lower())
    if window is None:
        raise scope.error(f"{base.name} is not a window of the WINDOW clause", node)
    others = {key: value for key, value in named.items() if value is not window}
    below = _parts(window, others, scope)
    return found[0] or below[0], found[1] or below[1], found[2] or below[2]


def _bare(node: exp.Expr, scope: Scope) -> tuple[exp.Expr, exp.Expr | None, bool]:
    """Return the call without IGNORE NULLS and FILTER, the condition of the latter, and whether the former is there."""
    condition, nulls = None, False
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        if isinstance(node, exp.Filter):
            condition = node.expression.this
        nulls = nulls or isinstance(node, exp.IgnoreNulls)
        node = node.this
    if not isinstance(node, exp.Anonymous):
        raise scope.error(f"{written(node)} is not a window function", node)
    return node, condition, nulls


def _arguments(call: exp.Expr, function: str, scope: Scope) -> tuple[list[exp.Expr], bool]:
    """Return the arguments, and whether NULLs are ignored, as one of them may say."""
    found, ignoring = [], False
    for item in call.expressions:
        if isinstance(item, exp.Distinct):
            raise scope.error("DISTINCT is not supported with OVER; group first", item)
        if isinstance(item, exp.IgnoreNulls | exp.RespectNulls):
            ignoring = ignoring or isinstance(item, exp.IgnoreNulls)
            item = item.this
        found.append(item)
    flag = {"first_value": 1, "last_value": 1, "nth_value": 2}.get(function)
    if flag is not None and len(found) == flag + 1 and isinstance(found[flag], exp.Boolean):
        ignoring = ignoring or bool(found.pop().this)
    return found, ignoring


def _made(
    function: str,
    arguments: list[exp.Expr],
    call: exp.Expr,
    name: str,
    by: tuple[OrderKey, ...],
    frame: Frame,
    scope: Scope,
) -> dict[str, Any]:
    """Return the fields of the call."""
    low, high = _ARITY.get(function, (1, 1))
    if not low <= len(arguments) <= high:
        raise scope.error(
            f"{call.name} takes {low if low == high else f'{low} to {high}'} arguments, not {len(arguments)}",
            call,
        )
    number, default, columns = 1, None, list(arguments)
    if function == "count" and (isinstance(columns[0], exp.Star) or _constant(columns[0], scope)):
        columns = []
    if function.startswith("session"):
        number = _gap(columns.pop(), scope)
    elif (at := _NUMBERED.get(function)) is not None and len(columns) > at:
        number = _number(columns.pop(at), function, scope)
    if function in ("lag", "lead") and number < 0:
        number, function = -number, "lead" if function == "lag" else "lag"
    read = [column(item, scope) for item in columns[:1]]
    kind = _type(function, read[0][1] if read else t.NULL, call, scope)
    if len(columns) > 1:
        if (found := _constant(columns[1], scope)) is not None:
            default = _cast(found, kind, columns[1], scope)
        else:
            read.append(column(columns[1], scope))
            if read[1][1] != kind:
                raise scope.error(
                    f"the default of {call.name} is {t.name(read[1][1])}, not {t.name(kind)}; write CAST",
                    columns[1],
                )
    return {
        "name": name, "function": function, "arguments": tuple(read), "type": kind, "order": by, "frame": frame,
        "number": number, "default": default,
    }  # fmt: skip


_ARITY = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "percent_rank", "cume_dist"), (0, 0)),
    **dict.fromkeys(("lag", "lead"), (1, 3)),
    **dict.fromkeys(("nth_value", "session_start", "session_end"), (2, 2)),
}


def _key(item: exp.Expr, scope: Scope) -> OrderKey:
    node = item.this if isinstance(item, exp.Ordered) else item
    name, kind = column(node, scope)
    if t.is_nested(kind):
        raise scope.error(f"{t.name(kind)} has no order; order by a part of it", node)
    descending = bool(item.args.get("desc"))
    first = item.args.get("nulls_first")
    return OrderKey(name, descending, not descending if first is None else bool(first))


def _kind(name: str, scope: Scope) -> pa.DataType:
    """Return the type of a column."""
    every = ((scan, f) for scan in scope.visible.values() for f in scan.table.schema)
    return next(f.type for scan, f in every if scan.column(f).column == name)


def column(node: exp.Expr, scope: Scope) -> tuple[str, pa.DataType]:
    """Return the column that an expression is, with its type.

    Raises:
        SqlError: if it is something else.
    """
    value = compile(node, scope)
    if value.column is None:
        raise scope.error(f"{value.excerpt} is not a column; compute it in a query below this one", node)
    return value.column, value.type


def _constant(node: exp.Expr, scope: Scope) -> Expr | None:
    if isinstance(node, exp.Star) or next(node.find_all(exp.Column), None) is not None:
        return None
    value = compile(node, scope)
    return value if isinstance(value.node, Literal) else None


def _cast(value: Expr, kind: pa.DataType, at: exp.Expr, scope: Scope) -> pa.Scalar | None:
    try:
        found = cast(value, kind).node
    except SpecError as error:
        raise scope.error(str(error), at) from error
    return found.value if isinstance(found, Literal) and found.value.is_valid else None


def _number(node: exp.Expr, function: str, scope: Scope) -> int:
    value = _constant(node, scope)
    if value is None or not t.is_integer(value.type):
        raise scope.error(f"{function} takes a constant whole number, not {written(node)}", node)
    assert isinstance(value.node, Literal)
    number = int(value.node.value.as_py())
    if number < 1 and function in ("ntile", "nth_value"):
        raise scope.error(f"{function} takes a number from 1 on, not {number}", node)
    return number


def _gap(node: exp.Expr, scope: Scope) -> int:
    value = compile(node, scope)
    if value.type != t.INTERVAL:
        raise scope.error("the gap of a session is a constant INTERVAL of days or less", node)
    return int(value.evaluate(no_columns, 1)[0].value)


def _type(function: str, kind: pa.DataType, call: exp.Expr, scope: Scope) -> pa.DataType:
    if function in ("row_number", "rank", "dense_rank", "ntile"):
        return t.INT
    if function in ("percent_rank", "cume_dist"):
        return t.DOUBLE
    if function in (*_VALUES, "session_start", "session_end"):
        return kind
    if function in ("bool_and", "bool_or"):
        if kind != t.BOOLEAN:
            raise scope.error(f"{call.name} takes a condition, not {t.name(kind)}", call)
        return kind
    try:
        return result_type(function, kind)  # type: ignore[arg-type]
    except SpecError as error:
        raise scope.error(f"{call.name}: {error}", call) from error
