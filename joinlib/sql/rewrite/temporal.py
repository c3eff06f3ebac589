"""Conditions that compare a time with now(): rows come and go.

    SELECT t.x FROM t WHERE t.at > now() - INTERVAL 1 DAY
    SELECT d.x FROM (SELECT t.x AS x, t.at + INTERVAL 1 DAY AS to FROM t) d QUALIFY $present(NULL, d.to)

Law: now() is the watermark. A row is there from the first batch after which the condition holds, until the first after
which it does not.
"""

from sqlglot import exp

from joinlib.errors import SpecError
from joinlib.expr.time import Interval
from joinlib.sql.literals import interval_of
from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.below import columns, items, read_of, values
from joinlib.sql.rewrite.names import Names
from joinlib.sql.supported import written

_NOW = frozenset(("now", "current_timestamp", "localtimestamp", "mz_now"))
_MIRROR: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
}


def temporal(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite a resolved SELECT in place; return it.

    Raises:
        SqlError: if now() is compared in another way.
    """
    parts = [one for part in trees.where_of(select) for one in _split(part)]
    mine = [part for part in parts if any(map(is_now, part.walk()))]
    if not mine:
        return select
    by_alias: dict[str, list[exp.Expr]] = {}
    for part in mine:
        aliases = trees.reads(part)
        if len(aliases) != 1 or not aliases <= _kept_sources(select):
            raise names.error(
                f"{written(part)}: {_FORMS}; of one input, whose rows are not filled with NULL", part
            )
        by_alias.setdefault(aliases.pop(), []).append(part)
    rest = [p for p in parts if not any(p is m for m in mine)]
    for alias, conditions in by_alias.items():
        own = [p for p in rest if not trees.subqueries(p) and trees.reads(p) == {alias}]
        rest = [p for p in rest if not any(p is o for o in own)]
        trees.set_where(select, rest)
        _wrap(select, alias, conditions, own, names)
        rest = trees.where_of(select)
    trees.set_where(select, rest)
    return select


def _kept_sources(select: exp.Select) -> set[str]:
    """The aliases of sources that no outer join fills with NULL."""
    found = {trees.alias_of(select.args["from_"].this)}
    for join in select.args.get("joins") or []:
        side, alias = join.side.upper(), trees.alias_of(join.this)
        if side in ("RIGHT", "FULL"):
            found = set()
        if side in ("", "RIGHT") and join.kind.upper() not in ("SEMI", "ANTI"):
            found.add(alias)
    return found


def _wrap(
    select: exp.Select, alias: str, conditions: list[exp.Expr], own: list[exp.Expr], names: Names
) -> None:
    """Put a source, with conditions of its own, below a query of the rows that are there now."""
    source = next(n for n in trees.source_nodes(select) if trees.alias_of(n) == alias)
    ends: dict[str, list[exp.Expr]] = {"$from": [], "$to": []}
    for part in conditions:
        side, value = _end(part, names)
        ends[side].append(value)
    named = columns(read_of(_parts(select), {alias}))
    inner, outer = names.fresh("p"), names.fresh("d")
    over = exp.Select(expressions=[trees.named(trees.column(inner, i.alias), i.alias) for i in items(named)])
    trees.with_columns(select, values(named, outer))
    source.replace(trees.derived(over, outer))
    below = exp.Select(expressions=items(named), from_=exp.From(this=source))
    trees.set_where(below, own)
    asked: list[exp.Expr] = []
    for side, function in (("$from", "greatest"), ("$to", "least")):
        if found := ends[side]:
            below.append(
                "expressions",
                trees.named(found[0] if len(found) == 1 else trees.call(function, *found), side),
            )
        asked.append(trees.column(inner, side) if ends[side] else exp.Null())
    over.set("from_", exp.From(this=trees.derived(below, inner)))
    over.set("qualify", exp.Qualify(this=trees.call("$present", *asked)))
    over.meta["over"] = True


def _parts(select: exp.Select) -> list[exp.Expr]:
    """All parts of a query but the sources that read nothing beside them."""
    ons = [join.args["on"] for join in select.args.get("joins") or [] if join.args.get("on")]
    laterals = [join.this for join in select.args.get("joins") or [] if isinstance(join.this, exp.Lateral)]
    clauses = ("where", "group", "having", "qualify", "order")
    others = [part for name in clauses if (part := select.args.get(name)) is not None]
    return [*select.expressions, *ons, *laterals, *(select.args.get("laterals") or []), *others]


def is_now(node: exp.Expr) -> bool:
    """Whether a node is the time at which it is asked."""
    if isinstance(node, exp.Column):
        return len(node.parts) == 1 and node.name.lower() in _NOW
    return isinstance(node, exp.Anonymous) and str(node.name).lower() in _NOW


def _split(part: exp.Expr) -> list[exp.Expr]:
    if not isinstance(part, exp.Between) or not any(map(is_now, part.walk())):
        return [part]
    low, high = part.args["low"], part.args["high"]
    return [exp.GTE(this=part.this.copy(), expression=low), exp.LTE(this=part.this.copy(), expression=high)]


def _end(part: exp.Expr, names: Names) -> tuple[str, exp.Expr]:
    """Return which end a comparison with now() sets, and the time from which on it holds, or no more holds."""
    if type(part) not in _MIRROR or trees.subqueries(part):
        raise names.error(f"{written(part)}: {_FORMS}", part)
    kind, left, right = type(part), part.this.unnest(), part.expression.unnest()
    if not any(map(is_now, left.walk())):
        kind, left, right = _MIRROR[kind], right, left
    if any(map(is_now, right.walk())):
        raise names.error(f"{written(part)}: {_FORMS}", part)
    while not is_now(left):
        left, right = _moved(left, right, part, names)
    end = exp.Cast(this=exp.Paren(this=right.copy()), to=exp.DataType.build("TIMESTAMPTZ"))
    if kind in (exp.LTE, exp.GT):
        tick = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="MICROSECOND"))
        return "$from" if kind is exp.GT else "$to", exp.Add(this=end, expression=tick)
    return "$from" if kind is exp.GTE else "$to", end


_FORMS = "now() is compared with a time, as in at > now() - INTERVAL 1 DAY, by <, <=, > or >=, among the ANDs of WHERE"


def _has_months(node: exp.Expr) -> bool:
    """Whether a value has a constant of months or years: adding it is not undone by taking it away."""
    for interval in node.find_all(exp.Interval):
        try:
            found = interval_of(interval).node
        except SpecError:
            continue  # what compiles it says more
        if isinstance(found, Interval) and found.months:
            return True
    return False


def _moved(left: exp.Expr, right: exp.Expr, part: exp.Expr, names: Names) -> tuple[exp.Expr, exp.Expr]:
    """Bring what is added to now(), or taken from it, to the other side."""
    if isinstance(left, exp.Add | exp.Sub):
        one, two = left.this.unnest(), left.expression.unnest()
        if any(map(_has_months, (one, two, *([right] if isinstance(right, exp.Interval) else [])))):
            raise names.error(
                f"{written(part)}: now() is moved by an INTERVAL of days or less, as months differ in length",
                part,
            )
        back = exp.Sub if isinstance(left, exp.Add) else exp.Add
        if any(map(is_now, one.walk())):
            first, second = (right, two) if isinstance(two, exp.Interval) or back is exp.Sub else (two, right)
            return one, back(this=exp.Paren(this=first.copy()), expression=exp.Paren(this=second.copy()))
        if isinstance(left, exp.Add):
            return two, exp.Sub(this=exp.Paren(this=right.copy()), expression=exp.Paren(this=one.copy()))
    raise names.error(f"{written(part)}: {_FORMS}", part)
