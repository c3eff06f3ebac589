"""Compiles syntax to typed expressions.

Law: what is not in the table below is rejected at its place, never guessed.
"""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SpecError, SqlError
from joinlib.expr import Expr, units
from joinlib.expr import types as t
from joinlib.expr.arithmetic import arithmetic, minus
from joinlib.expr.cast import cast
from joinlib.expr.compare import between, check, compare, one_of
from joinlib.expr.forms import concat, if_
from joinlib.expr.functions import VOLATILE, check_call, function
from joinlib.expr.logic import both, choose, either, is_null, negate
from joinlib.expr.mathematics import SIGNS
from joinlib.expr.nested import array_of, field, item_of, struct_
from joinlib.expr.nodes import constant
from joinlib.expr.patterns import like
from joinlib.expr.time import is_interval, shift
from joinlib.sql.literals import interval_of, number_of, type_of
from joinlib.sql.scope import Scope
from joinlib.sql.supported import refusal
from joinlib.sql.syntax import higher, special

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
    if sign == "*" and t.INTERVAL in (left.type, right.type):
        return units.scaled(*((left, right) if left.type == t.INTERVAL else (right, left)))
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


def _literal_text(node: exp.Expr, scope: Scope) -> Expr:
    return _literal(exp.Literal.string(node.name), scope)


def _parts(name: str, *arguments: str) -> Callable[[exp.Expr, Scope], Expr]:
    """Compile calls with words between their arguments: SUBSTRING(s FROM 2 FOR 3)."""

    def built(node: exp.Expr, scope: Scope) -> Expr:
        given = [node.this, *(node.args[a] for a in arguments if node.args.get(a) is not None)]
        check_call(name, len(given))
        return function(name, [_compiled(part, scope) for part in given])

    return built


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
    if node.args.get("field"):
        raise scope.error("IN takes a list or (SELECT ...)", node)
    return one_of(_compiled(node.this, scope), [_compiled(e, scope) for e in node.expressions])


def _like(node: exp.Expr, scope: Scope, escape: str = "\\") -> Expr:
    fold = isinstance(node, exp.ILike)
    found = _any_of(node, scope, lambda left, right: like(left, right, escape, fold))
    return _maybe_not(node, found)


def _escape(node: exp.Expr, scope: Scope) -> Expr:
    if not isinstance(node.this, exp.Like | exp.ILike):
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
    if (found := special(node, scope, _compiled)) is not None:
        return found
    check_call(name, len(node.expressions))  # before its arguments, which may be unsupported themselves
    if name.lower() == "extract" or any(isinstance(e, exp.Star | exp.Distinct) for e in node.expressions):
        raise scope.error(f"{name} is not supported in this form", node)
    return function(name, [_compiled(e, scope) for e in node.expressions])


def _trim(node: exp.Expr, scope: Scope) -> Expr:
    names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(str(node.args.get("position")), "trim")
    return function(name, [_compiled(n, scope) for n in (node.expression, node.this) if n is not None])


def _extract(node: exp.Expr, scope: Scope) -> Expr:
    return units.extract(node.name, _compiled(node.expression, scope))


def _dot(node: exp.Expr, scope: Scope) -> Expr:
    return field(_compiled(node.this, scope), node.expression.name)


def _item(node: exp.Expr, scope: Scope) -> Expr:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise scope.error("an element is x[n]; write slice(x, start, length) for some of them", node)
    return item_of(_compiled(node.this, scope), _compiled(node.expressions[0], scope))


def _array(node: exp.Expr, scope: Scope) -> Expr:
    return array_of(*(_compiled(e, scope) for e in node.expressions))


def _tuple(node: exp.Expr, scope: Scope) -> Expr:
    """Compile (a, b), which is struct(a, b), as in Spark: a NULL in it is a value that is compared."""
    return struct_(*(_compiled(e, scope) for e in node.expressions))


def _equal(node: exp.Expr, scope: Scope) -> Expr:
    """Compile x = y; of rows of values as an equality of each, by which inputs may be joined."""
    left, right = node.this.unnest(), node.expression.unnest()
    several = isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)
    if not several or len(left.expressions) != len(right.expressions):
        return compare("=", _compiled(node.this, scope), _compiled(node.expression, scope))
    pairs = zip(left.expressions, right.expressions, strict=True)
    return both(*(compare("<=>", _compiled(one, scope), _compiled(other, scope)) for one, other in pairs))


def _bits(sign: str) -> Callable[[exp.Expr, Scope], Expr]:
    return _two(partial(SIGNS[sign].build, sign))


def _transform(node: exp.Expr, scope: Scope) -> Expr:
    return higher("transform", [node.this, node.expression], scope, _compiled, node)


def _interval(node: exp.Expr, scope: Scope) -> Expr:
    constant_ = node.this.unnest() if node.this is not None else None
    constant_ = constant_.this if isinstance(constant_, exp.Neg) else constant_
    unit = node.args.get("unit")
    if constant_ is None or isinstance(constant_, exp.Literal) or not isinstance(unit, exp.Var):
        return interval_of(node)
    return units.interval_of(_compiled(node.this, scope), unit.name)


def _matches(node: exp.Expr, scope: Scope) -> Expr:
    return _maybe_not(node, _any_of(node, scope, lambda left, right: function("rlike", [left, right])))


def _maybe_not(node: exp.Expr, found: Expr) -> Expr:
    return negate(found) if node.args.get("negate") else found


def _any_of(node: exp.Expr, scope: Scope, build: Callable[[Expr, Expr], Expr]) -> Expr:
    """Compile x LIKE pattern, x LIKE ANY (patterns) and x LIKE ALL (patterns)."""
    value, many = _compiled(node.this, scope), node.expression
    if not isinstance(many, exp.Any | exp.All):
        return build(value, _compiled(many, scope))
    inner = many.this.unnest()
    patterns = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
    join = either if isinstance(many, exp.Any) else both
    return join(*(build(value, _compiled(pattern, scope)) for pattern in patterns))


def _boolean(node: exp.Expr, scope: Scope) -> Expr:
    return constant(pa.scalar(bool(node.this)), "TRUE" if node.this else "FALSE")


_TABLE: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Expr]] = {
    exp.Column: _column,
    exp.Paren: _one(lambda value: value),
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: lambda *_: _NULL,
    exp.HexString: lambda node, _: constant(
        pa.scalar(bytes.fromhex(node.name.zfill(len(node.name) + len(node.name) % 2)), t.BINARY),
        f"X'{node.name}'",
    ),
    exp.Interval: _interval,
    exp.Overlay: _parts("overlay", "expression", "from_", "for_"),
    exp.RawString: _literal_text,
    exp.Substring: _parts("substring", "start", "length"),
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
    exp.EQ: _equal,
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
    exp.ILike: _like,
    exp.RegexpLike: _matches,
    exp.Bracket: _item,
    exp.Array: _array,
    exp.Tuple: _tuple,
    exp.BitwiseAnd: _bits("&"),
    exp.BitwiseOr: _bits("|"),
    exp.BitwiseXor: _bits("^"),
    exp.BitwiseLeftShift: _bits("<<"),
    exp.BitwiseRightShift: _bits(">>"),
    exp.BitwiseNot: _one(partial(SIGNS["~"].build, "~")),
    exp.Transform: _transform,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.DPipe: _two(concat),
    exp.Anonymous: _call,
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.Dot: _dot,
}
