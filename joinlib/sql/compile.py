"""Compiles syntax to typed expressions.

Law: what is not in the table below is rejected at its place, never guessed.
"""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SpecError, SqlError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.arithmetic import arithmetic, minus
from joinlib.expr.cast import cast
from joinlib.expr.compare import between, check, compare, one_of
from joinlib.expr.functions import VOLATILE, check_call, function, if_
from joinlib.expr.logic import both, choose, either, is_null, negate
from joinlib.expr.nodes import constant
from joinlib.expr.text import concat, like
from joinlib.expr.time import is_interval, part, seconds, shift
from joinlib.sql.literals import interval_of, number_of, type_of
from joinlib.sql.scope import Scope
from joinlib.sql.supported import refusal

_NULL = constant(pa.scalar(None), "NULL")


def compile(node: exp.Expr, scope: Scope) -> Expr:
    """Compile a syntax tree to a typed expression.

    Raises:
        SqlError: at the innermost part that is wrong.
    """
    value = _compiled(node, scope)
    try:
        check(value.node)
    except SpecError as e:
        raise scope.error(str(e), node) from e
    return value


def _compiled(node: exp.Expr, scope: Scope) -> Expr:
    if (given := scope.given(node)) is not None:
        return given
    build = _TABLE.get(type(node))
    if build is None:
        raise scope.error(refusal(node), node)
    try:
        return build(node, scope)
    except SqlError:
        raise
    except SpecError as e:
        raise scope.error(str(e), node) from e


def _two(build: Callable[[Expr, Expr], Expr]) -> Callable[[exp.Expr, Scope], Expr]:
    def built(node: exp.Expr, scope: Scope) -> Expr:
        return build(_compiled(node.this, scope), _compiled(node.expression, scope))

    return built


def _one(build: Callable[[Expr], Expr]) -> Callable[[exp.Expr, Scope], Expr]:
    def built(node: exp.Expr, scope: Scope) -> Expr:
        return build(_compiled(node.this, scope))

    return built


def _chain(build: Callable[..., Expr]) -> Callable[[exp.Expr, Scope], Expr]:
    """Compile a OR b OR c, which is parsed as (a OR b) OR c, from all its
    parts at once, however many there are.
    """

    def built(node: exp.Expr, scope: Scope) -> Expr:
        parts, left = [], node
        while type(left) is type(node) and (left is node or scope.given(left) is None):
            parts.append(left.expression)
            left = left.this.unnest()
        return build(*(_compiled(part, scope) for part in (left, *reversed(parts))))

    return built


def _calculate(sign: str, left: Expr, right: Expr) -> Expr:
    if sign in "+-" and any(t.is_time(e.type) or is_interval(e) for e in (left, right)):
        return shift(sign, left, right)
    return arithmetic(sign, left, right)


def _column(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        raise scope.error(refusal(node.this), node)
    try:
        return scope.resolve(node)
    except SqlError:
        if not node.table and node.name.lower() in VOLATILE:  # current_date needs no parentheses
            return function(node.name, [])
        raise


def _literal(node: exp.Expr, scope: Scope) -> Expr:
    if node.is_string:
        text = node.name
        return constant(pa.scalar(text), "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")
    return number_of(node.name)


def _negative(node: exp.Expr, scope: Scope) -> Expr:
    """Compile a minus sign: -2147483648 is one INT, not the negative of a BIGINT."""
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number_of("-" + node.this.name)
    return minus(_compiled(node.this, scope))


def _adjacent(node: exp.Expr, scope: Scope) -> Expr:
    """Compile adjacent strings: 'a' 'b' is one text."""
    return concat(*[_compiled(e, scope) for e in node.expressions])


def _cast(node: exp.Expr, scope: Scope) -> Expr:
    return cast(_compiled(node.this, scope), type_of(node.args["to"]), isinstance(node, exp.TryCast))


def _in(node: exp.Expr, scope: Scope) -> Expr:
    if node.args.get("query"):
        raise scope.error(refusal(node.args["query"]), node)
    return one_of(_compiled(node.this, scope), [_compiled(e, scope) for e in node.expressions])


def _like(node: exp.Expr, scope: Scope, escape: str = "\\") -> Expr:
    found = like(_compiled(node.this, scope), _compiled(node.expression, scope), escape)
    return negate(found) if node.args.get("negate") else found


def _escape(node: exp.Expr, scope: Scope) -> Expr:
    if not isinstance(node.this, exp.Like):
        raise scope.error("ESCAPE is only allowed after LIKE", node)
    escape = node.expression
    if not (isinstance(escape, exp.Literal) and escape.is_string and len(escape.name) == 1):
        raise scope.error("ESCAPE takes one character, as in ESCAPE '!'", node)
    return _like(node.this, scope, escape.name)


def _is(node: exp.Expr, scope: Scope) -> Expr:
    value = _compiled(node.this, scope)
    if isinstance(node.expression, exp.Null):
        return is_null(value)
    return compare("<=>", value, _compiled(node.expression, scope))


def _case(node: exp.Expr, scope: Scope) -> Expr:
    subject = _compiled(node.this, scope) if node.this else None
    conditions = [_compiled(i.this, scope) for i in node.args["ifs"]]
    if subject is not None:
        conditions = [compare("=", subject, c) for c in conditions]
    default = node.args.get("default")
    values = [_compiled(i.args["true"], scope) for i in node.args["ifs"]]
    values.append(_compiled(default, scope) if default else _NULL)
    whens = " ".join(f"WHEN {c.sql} THEN {v.sql}" for c, v in zip(conditions, values, strict=False))
    return choose(conditions, values, f"CASE {whens} ELSE {values[-1].sql} END")


def _if(node: exp.Expr, scope: Scope) -> Expr:
    otherwise = node.args.get("false")
    value = _compiled(node.args["true"], scope)
    return if_(_compiled(node.this, scope), value, _compiled(otherwise, scope) if otherwise else _NULL)


def _between(node: exp.Expr, scope: Scope) -> Expr:
    return between(
        _compiled(node.this, scope), _compiled(node.args["low"], scope), _compiled(node.args["high"], scope)
    )


def _call(node: exp.Expr, scope: Scope) -> Expr:
    name = str(node.name)
    check_call(name, len(node.expressions))  # before its arguments, which may be unsupported themselves
    if name.lower() == "extract" or any(isinstance(e, exp.Star | exp.Distinct) for e in node.expressions):
        raise scope.error(f"{name} is not supported in this form", node)
    return function(name, [_compiled(e, scope) for e in node.expressions])


def _trim(node: exp.Expr, scope: Scope) -> Expr:
    if node.expression is not None:
        raise scope.error("TRIM removes spaces; TRIM(x FROM y) is not supported", node)
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    return function(names.get(str(node.args.get("position")), "trim"), [_compiled(node.this, scope)])


def _extract(node: exp.Expr, scope: Scope) -> Expr:
    if node.name.lower() not in _PARTS:
        raise scope.error(f"EXTRACT({node.name} ...) is not supported; use one of {', '.join(_PARTS)}", node)
    value = _compiled(node.expression, scope)
    return seconds(value) if node.name.lower() == "second" else part(node.name.lower(), value)


_PARTS = ("year", "month", "day", "hour", "minute", "second", "quarter")


def _dot(node: exp.Expr, scope: Scope) -> Expr:
    _compiled(node.this, scope)
    raise scope.error("write fields as input.column.field", node)


def _boolean(node: exp.Expr, scope: Scope) -> Expr:
    return constant(pa.scalar(bool(node.this)), "TRUE" if node.this else "FALSE")


_TABLE: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Expr]] = {
    exp.Column: _column,
    exp.Paren: _one(lambda value: value),
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: lambda *_: _NULL,
    exp.Interval: lambda node, _: interval_of(node),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Neg: _negative,
    exp.Concat: _adjacent,
    exp.Add: _two(partial(_calculate, "+")),
    exp.Sub: _two(partial(_calculate, "-")),
    exp.Mul: _two(partial(_calculate, "*")),
    exp.Div: _two(partial(_calculate, "/")),
    exp.IntDiv: _two(partial(_calculate, "div")),
    exp.Mod: _two(partial(_calculate, "%")),
    exp.EQ: _two(partial(compare, "=")),
    exp.NEQ: _two(partial(compare, "<>")),
    exp.LT: _two(partial(compare, "<")),
    exp.LTE: _two(partial(compare, "<=")),
    exp.GT: _two(partial(compare, ">")),
    exp.GTE: _two(partial(compare, ">=")),
    exp.NullSafeEQ: _two(partial(compare, "<=>")),
    exp.NullSafeNEQ: _two(lambda left, right: negate(compare("<=>", left, right))),
    exp.And: _chain(both),
    exp.Or: _chain(either),
    exp.Not: _one(negate),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.DPipe: _two(concat),
    exp.Anonymous: _call,
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.Dot: _dot,
}
