"""Reads the calls of aggregate functions.

Law: types are Spark's; an aggregate that depends on the order of rows is refused, since a stream has none.

FILTER (WHERE c) becomes part of the argument, as CASE WHEN c THEN x END: aggregates skip NULLs. For that reason
count_if(c) is count(CASE WHEN c THEN TRUE END); bool_and is the least of some truth values, bool_or the greatest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast, castable
from joinlib.expr.compare import compare
from joinlib.expr.functions import AGGREGATES, function
from joinlib.expr.logic import both, choose, is_null, negate
from joinlib.expr.nodes import Literal, constant
from joinlib.expr.packed import pack, packs, unpack, unpack_list
from joinlib.model.grouping import Function
from joinlib.sql.compile import compile
from joinlib.sql.scope import Scope
from joinlib.sql.supported import written
from joinlib.sql.truth import checked, condition

_ONE: tuple[Function, ...] = ("mode", "bit_and", "bit_or", "bit_xor", "skewness", "kurtosis")
_PAIRS: tuple[Function, ...] = (
    "corr", "covar_pop", "covar_samp", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip
_NAMES: dict[str, tuple[str, Function]] = {  # how it is called: its name in the plan, what computes it
    "count": ("count", "count"),
    "sum": ("sum", "sum"),
    "min": ("min", "min"),
    "max": ("max", "max"),
    "avg": ("avg", "avg"),
    "mean": ("avg", "avg"),
    "any_value": ("any_value", "min"),
    "array_agg": ("collect_list", "collect_list"),
    "bool_and": ("bool_and", "min"),
    "bool_or": ("bool_or", "max"),
    "collect_list": ("collect_list", "collect_list"),
    "collect_set": ("collect_set", "collect_set"),
    "count_if": ("count_if", "count"),
    "every": ("bool_and", "min"),
    "max_by": ("max_by", "max_by"),
    "median": ("median", "percentile"),
    "min_by": ("min_by", "min_by"),
    "percentile": ("percentile", "percentile"),
    "some": ("bool_or", "max"),
    "std": ("stddev_samp", "stddev_samp"),
    "stddev": ("stddev_samp", "stddev_samp"),
    "stddev_pop": ("stddev_pop", "stddev_pop"),
    "stddev_samp": ("stddev_samp", "stddev_samp"),
    "var_pop": ("var_pop", "var_pop"),
    "var_samp": ("var_samp", "var_samp"),
    "variance": ("var_samp", "var_samp"),
    "approx_count_distinct": ("approx_count_distinct", "count"),
    "approx_percentile": ("percentile_approx", "percentile_approx"),
    "percentile_approx": ("percentile_approx", "percentile_approx"),
    "percentile_cont": ("percentile_cont", "percentile"),
    "percentile_disc": ("percentile_disc", "percentile_disc"),
    "listagg": ("listagg", "collect_list"),
    "string_agg": ("listagg", "collect_list"),
    "regr_avgx": ("regr_avgx", "avg"),
    "regr_avgy": ("regr_avgy", "avg"),
    "regr_count": ("regr_count", "count"),
    **{name: (name, name) for name in (*_ONE, *_PAIRS)},
}
SUPPORTED = tuple(_NAMES)
_ORDERLESS = (
    "depends on the order of rows, and a stream has none; say by what: {}(value ORDER BY time), which is"
    " {}(value, time)"
)
_INSTEAD = {
    **{name: _ORDERLESS.format(name, "min_by") for name in ("first", "first_value")},
    **{name: _ORDERLESS.format(name, "max_by") for name in ("last", "last_value")},
}
_BY = ("min_by", "max_by")
_LISTS = ("collect_list", "collect_set")
_TEXTS = ("listagg", "string_agg")
_OF_VALUES = (
    "{} joins its values in their own order, up or down: no other order is kept, such as that of {}; write WITHIN"
    " GROUP (ORDER BY the same value)"
)
_FRACTIONS = ("percentile", "percentile_approx", "percentile_cont", "percentile_disc")
_OF_PAIRS = {"regr_avgx": 1, "regr_avgy": 0, "regr_count": 0}  # which value counts where both are known
_TWO = (*_BY, *_PAIRS, *_FRACTIONS, *_OF_PAIRS)
_ONCE = ("min", "max", *_LISTS)  # each value counts once anyway, or as often as it is there


_Finish = Callable[[Expr], Expr]  # what is made of an aggregate, for each group


@dataclass(frozen=True)
class Asked:
    """A call as it is computed."""

    function: Function
    arguments: tuple[Expr, ...]  # none: count(*)
    type: pa.DataType  # until it is known: an array or not
    sql: str
    distinct: bool = False
    fractions: tuple[float, ...] = ()
    finish: _Finish | None = None


def aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """Find the outermost calls of aggregate functions, with their FILTER, from left to right."""
    todo = [node]
    while todo:
        found = todo.pop()
        if is_call(found):
            yield found
        elif not isinstance(found, exp.Select | exp.Subquery):
            todo += reversed(list(found.iter_expressions()))


def is_call(node: exp.Expr) -> bool:
    """Return whether the node is a call of an aggregate function, with or without a FILTER."""
    if isinstance(node, exp.Filter):
        return is_call(node.this)
    if isinstance(node, exp.WithinGroup):
        return is_call(node.this)
    return isinstance(node, exp.Anonymous) and str(node.name).lower() in AGGREGATES


def asked(node: exp.Expr, scope: Scope) -> Asked:
    """Return what a call asks for; `scope` is that of joined rows.

    Raises:
        SqlError: if it is not supported, or not in this form.
    """
    call = _ordered(node.this if isinstance(node, exp.Filter) else node, scope)
    name = str(call.name).lower()
    known = _NAMES.get(name)
    if known is None:
        why = _INSTEAD.get(name) or f"is not supported; use one of {', '.join(_NAMES)}"
        raise scope.error(f"{name} {why}", node)
    found = _plain(*known, call, scope)
    if found.distinct and found.function not in _DISTINCT:
        raise scope.error(f"DISTINCT in {name} is not supported", node)
    if _descends(node):
        found = replace(found, finish=_backwards(found.finish))
    if isinstance(node, exp.Filter):
        found = _filtered(found, node.expression.this, scope)
    found = _typed(found, known[0])
    try:
        found = _packed(found)
        return replace(found, type=_type(known[0], found))
    except SpecError as error:
        raise scope.error(f"{found.sql}: {error}", node) from error


def _typed(found: Asked, name: str) -> Asked:
    """Return the call with NULLs of the types that Spark gives them; what is one of them has no type, as they."""
    kind = _OF_NULL.get(name, _OF_NULL.get(found.function))
    void = [value.type == t.NULL for value in found.arguments]
    if kind is None or not any(void) or (found.function == "count" and not found.distinct):
        return found
    arguments = tuple(cast(v, kind) if v.type == t.NULL else v for v in found.arguments)
    one_of_them = void[0] and found.function in _CHOSEN and name not in _CONDITIONS
    return replace(found, arguments=arguments, finish=_null if one_of_them else found.finish)


def _null(_: Expr) -> Expr:
    return constant(pa.scalar(None), "NULL")


_CONDITIONS = ("bool_and", "bool_or")
_CHOSEN = ("min", "max", "mode", *_BY)  # whose result is one of the values
_OF_NULL: dict[str, pa.DataType] = {  # by what an aggregate is called, or computed by
    **dict.fromkeys(("sum", "avg", "percentile", "percentile_approx", "percentile_disc"), t.DOUBLE),
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp"), t.DOUBLE),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), t.INT),
    **dict.fromkeys(("count", *_CONDITIONS, *_CHOSEN), t.BOOLEAN),
    "listagg": t.STRING,
}
_DISTINCT = ("count", "sum", "avg", "min", "max", *_LISTS, "var_pop", "var_samp", "stddev_pop", "stddev_samp")


def _packed(found: Asked) -> Asked:
    """Return the call over values that have an order, and of which what comes out is taken out again."""
    sorts = found.distinct or found.function in ("min", "max", "mode", *_BY, *_LISTS)
    if not sorts or not any(packs(value.type) for value in found.arguments):
        return found
    kind, finish = found.arguments[0].type, found.finish
    if packs(kind) and found.function != "count":
        finish = _after(partial(unpack_list if found.function in _LISTS else unpack, kind=kind), finish)
    return replace(found, arguments=tuple(map(pack, found.arguments)), finish=finish)


def _after(first: _Finish, then: _Finish | None) -> _Finish:
    return first if then is None else lambda value: then(first(value))


def _descends(node: exp.Expr) -> bool:
    """Whether a call joins its values from the greatest to the least."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(call, exp.WithinGroup) or str(call.this.name).lower() not in _TEXTS:
        return False
    return bool(call.expression.expressions[0].args.get("desc"))


def _backwards(finish: _Finish | None) -> _Finish:
    assert finish is not None
    return lambda values: finish(function("reverse", [values]))


def _ordered(call: exp.Expr, scope: Scope) -> exp.Expr:
    """Write f(p) WITHIN GROUP (ORDER BY x) as f(x, p)."""
    if not isinstance(call, exp.WithinGroup):
        return call
    inner, order = call.this, call.expression.expressions
    name = str(inner.name).lower()
    if name in _TEXTS and len(order) > 1:
        raise scope.error(_OF_VALUES.format(name, ", ".join(written(o.this) for o in order)), call)
    if name not in ("percentile_cont", "percentile_disc", "mode", *_TEXTS) or len(order) != 1:
        raise scope.error(f"WITHIN GROUP is not supported for {name}; leave it out", call)
    by, down = order[0].this, bool(order[0].args.get("desc"))
    if name in _TEXTS:
        given = inner.expressions[0] if inner.expressions else None
        given = given.expressions[0] if isinstance(given, exp.Distinct) else given
        if given is None or given.unnest() != by.unnest():
            raise scope.error(_OF_VALUES.format(name, written(by)), call)
        return inner
    if down:
        raise scope.error(
            f"WITHIN GROUP (ORDER BY ... DESC) is not supported; write 1 - the fraction of {name}", call
        )
    made = exp.Anonymous(this=inner.name, expressions=[by, *inner.expressions])
    made.meta.update(inner.meta)
    made.parent = call.parent
    return made


@dataclass(frozen=True)
class _Given:
    """The arguments of a call: those that have a value for each row, and the constants beside them."""

    nodes: tuple[exp.Expr, ...]
    once: bool  # DISTINCT
    fractions: tuple[float, ...] = ()
    several: bool = False  # fractions were an array
    finish: _Finish | None = None


def _given(name: str, call: exp.Expr, scope: Scope) -> _Given:
    nodes = tuple(call.expressions)
    once = len(nodes) == 1 and isinstance(nodes[0], exp.Distinct)
    nodes = tuple(nodes[0].expressions) if once else nodes
    if name == "median":
        return _Given(nodes, once, (0.5,))
    if name in _FRACTIONS and len(nodes) in (2, 2 + (name == "percentile_approx")):
        return _Given(nodes[:1], once, *_fractions(nodes[1], scope))
    if name == "listagg" and nodes:
        return _Given(nodes[:1], once, finish=_joined(nodes, scope))
    if name == "mode":
        return _Given(nodes[:1], once)  # whether ties are decided: they are, for the least value
    return _Given(nodes[:1], True) if name == "approx_count_distinct" else _Given(nodes, once)


def _plain(name: str, function: Function, call: exp.Expr, scope: Scope) -> Asked:
    """Compile a call without its FILTER and its type."""
    given = _given(name, call, scope)
    nodes, once = given.nodes, given.once
    wanted = 2 if name in _TWO else 1
    count = len(nodes) + (name in _FRACTIONS and bool(given.fractions))
    if count != wanted and not (once and name == "count" and nodes):
        raise scope.error(f"{call.name} takes {wanted} argument{'s'[: wanted > 1]}, not {count}", call)
    if any(isinstance(n, exp.Star) for n in nodes):
        return _star(name, nodes[0], once, call, scope)
    for node in nodes:
        if inner := next(aggregates(node), None):
            raise scope.error("an aggregate of an aggregate is not supported", inner)
    values = tuple(_argument(name, compile(node, scope), scope, node) for node in nodes)
    last = ", ".join(map(str, given.fractions))
    texts = [v.sql for v in values] + [f"array({last})" if given.several else last] * (name in _FRACTIONS)
    sql = f"{name}({'DISTINCT ' if once else ''}{', '.join(texts)})"
    if name in _BY and values[0].sql == values[1].sql:
        values, function = values[:1], "min" if name == "min_by" else "max"
    if once:
        values = tuple({v.sql: v for v in values}.values())
        function = "collect_set" if function == "collect_list" else function
    if name == "count_if":
        met = checked(values[0], call, scope, f"{name} takes a condition")
        values = (_only(met, constant(pa.scalar(True), "TRUE")),)
    if name in _OF_PAIRS:
        values = (_both(values[0], values[1], _OF_PAIRS[name]),)
    kind = pa.list_(t.DOUBLE) if given.several else pa.null()
    distinct = once and function not in _ONCE
    return Asked(function, values, kind, sql, distinct, given.fractions, given.finish)


def _argument(name: str, value: Expr, scope: Scope, node: exp.Expr) -> Expr:
    """Convert an argument to what the aggregate is computed from."""
    if name == "listagg":
        return cast(value, t.STRING) if t.is_nested(value.type) or value.type == t.BINARY else value
    if name in (*_PAIRS, "skewness", "kurtosis"):
        if not (t.is_number(value.type) or value.type == t.NULL):
            raise scope.error(f"{name} takes numbers, {value.excerpt} is {t.name(value.type)}", node)
        return cast(value, t.DOUBLE)
    return value


def _both(left: Expr, right: Expr, then: int) -> Expr:
    """The value of that number where neither is NULL, else NULL."""
    known = both(negate(is_null(left)), negate(is_null(right)))
    value = (left, right)[then]
    return choose(
        [known], [value, constant(pa.scalar(None), "NULL")], f"CASE WHEN {known.sql} THEN {value.sql} END"
    )


def _joined(nodes: Sequence[exp.Expr], scope: Scope) -> _Finish:
    """Return what joins the values of listagg(x, separator)."""
    mark = compile(nodes[1], scope) if len(nodes) > 1 else constant(pa.scalar(""), "''")
    if not isinstance(mark.node, Literal) or mark.type != t.STRING:
        raise scope.error("listagg takes a constant separator", nodes[1])

    def finish(values: Expr) -> Expr:
        texts = cast(values, pa.list_(t.STRING))  # after they are in order: 9 is before 10
        text = function("array_join", [texts, mark])
        filled = compare(">", function("size", [values]), constant(pa.scalar(0, t.INT), "0"))
        return choose(
            [filled], [text, constant(pa.scalar(None), "NULL")], f"listagg({values.sql}, {mark.sql})"
        )

    return finish


def _star(name: str, star: exp.Expr, once: bool, call: exp.Expr, scope: Scope) -> Asked:
    if star.args.get("except_"):
        raise scope.error("count(* EXCEPT ...) is not supported; write count(*) or count(a column)", call)
    if name != "count" or once:
        word = "DISTINCT " if once else ""
        raise scope.error(f"{call.name}({word}*) is not supported; name the column", call)
    return Asked("count", (), t.BIGINT, "count(*)")


def _fractions(node: exp.Expr, scope: Scope) -> tuple[tuple[float, ...], bool]:
    """Read the fractions of a percentile, a number or array(number, ...); and whether they are an array."""
    several = isinstance(node, exp.Anonymous) and str(node.name).lower() == "array"
    found = []
    for one in node.expressions if several else [node]:
        number = float(one.name) if isinstance(one, exp.Literal) and not one.is_string else -1.0
        if not 0 <= number <= 1:
            raise scope.error(
                f"percentile takes a number from 0 to 1, or array(...) of such, not {written(one)}", one
            )
        found.append(number)
    if several and not found:
        raise scope.error("percentile takes at least one number from 0 to 1", node)
    return tuple(found), several


def _filtered(found: Asked, node: exp.Expr, scope: Scope) -> Asked:
    """Return the call over the rows that pass its FILTER."""
    if inner := next(aggregates(node), None):
        raise scope.error("FILTER cannot contain aggregates; it chooses rows, HAVING chooses groups", inner)
    chosen = condition(node, scope, "FILTER takes a condition")
    at = 1 if found.function in _BY else 0  # NULL there means that the row does not count
    values = list(found.arguments) or [constant(pa.scalar(True), "TRUE")]
    values[at] = _only(chosen, values[at])
    sql = f"{found.sql} FILTER (WHERE {chosen.sql})"
    return replace(found, arguments=tuple(values), sql=sql)


def _only(met: Expr, value: Expr) -> Expr:
    """CASE WHEN met THEN value END."""
    sql = f"CASE WHEN {met.sql} THEN {value.sql} END"
    return choose([met], [value, constant(pa.scalar(None), "NULL")], sql)


def _type(name: str, found: Asked) -> pa.DataType:
    kinds = [value.type for value in found.arguments]
    if found.distinct or found.function in (*_BY, *_LISTS):
        for kind in kinds:
            _check_order(kind)
    if name in ("bool_and", "bool_or") and kinds[0] != t.BOOLEAN:
        raise SpecError(f"it takes a condition, not {t.name(kinds[0])}")
    kind = result_type(found.function, kinds[0] if kinds else t.NULL)
    return pa.list_(kind) if t.is_nested(found.type) else kind


def _check_order(kind: pa.DataType) -> None:
    if kind == t.NULL:
        raise SpecError("its values have no type; write CAST(NULL AS ...)")


def _as_number(kind: pa.DataType) -> str:
    """The end of an error message: how a value of that type becomes a number."""
    if kind == t.INTERVAL:
        return "; of two times write unix_micros(a) - unix_micros(b), or timestampdiff(SECOND, b, a)"
    return "; write CAST(... AS DOUBLE)" if castable(kind, t.DOUBLE) else ""


def result_type(function: Function, kind: pa.DataType) -> pa.DataType:
    """Return Spark's type of an aggregate over values of type `kind`.

    Raises:
        SpecError: if the aggregate is not defined for that type.
    """
    if function == "count":
        return t.BIGINT
    if function in ("min", "max", *_BY, *_LISTS):
        _check_order(kind)
        return pa.list_(kind) if function in _LISTS else kind
    if function == "mode":
        _check_order(kind)
        return kind
    if function in ("bit_and", "bit_or", "bit_xor"):
        if not t.is_integer(kind):
            raise SpecError(f"it takes a whole number, not {t.name(kind)}")
        return kind
    if function == "percentile_approx" and (t.is_number(kind) or t.is_time(kind)):
        return kind
    if not t.is_number(kind):
        raise SpecError(f"it takes a number, not {t.name(kind)}{_as_number(kind)}")
    if function not in ("sum", "avg") or not t.is_decimal(kind):
        return t.BIGINT if function == "sum" and t.is_integer(kind) else t.DOUBLE
    more, finer = (10, 0) if function == "sum" else (4, 4)
    return pa.decimal128(min(kind.precision + more, 38), min(kind.scale + finer, 38))
