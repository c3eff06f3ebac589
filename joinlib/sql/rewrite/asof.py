"""Writes as-of joins by a window function over both sides together.

    SELECT a.x, b.y FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.at >= b.at
    SELECT d.x, d.y FROM (
        SELECT u.x AS x, last_value(u.y) FILTER (WHERE u.right) OVER (PARTITION BY u.k ORDER BY u.at, u.right DESC) AS y
        FROM (SELECT a.x AS x, NULL AS y, a.k AS k, a.at AS at, FALSE AS right FROM a
              UNION ALL SELECT NULL, b.y, b.k, b.at, TRUE FROM b WHERE b.k IS NOT NULL AND b.at IS NOT NULL) u
        QUALIFY NOT u.right) d

Law: each row of the left side meets, of the rows of the right side with its keys that are not after it (or not before
it, for <=), the one nearest in time; then further inequalities, a tolerance, may refuse that one. Of several rows at
one time it is the last by all their columns.
"""

from dataclasses import dataclass, field

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.asof_syntax import LAST_OF_USING, MARK, MATCH
from joinlib.sql.rewrite.below import Values, above, columns, left_of, read_of, taken
from joinlib.sql.rewrite.names import Names
from joinlib.sql.supported import written

_MIRROR = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.LT: exp.GT}


@dataclass
class _Conditions:
    """The parts of ON; pairs are of the left and the right side."""

    keys: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)
    nearest: list[tuple[type[exp.Expr], exp.Expr, exp.Expr]] = field(default_factory=list)
    left: list[exp.Expr] = field(default_factory=list)
    right: list[exp.Expr] = field(default_factory=list)
    after: list[exp.Expr] = field(default_factory=list)  # what the nearest row must fulfil besides


def asof(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite the marked joins of a resolved SELECT in place, from the left; return it.

    Raises:
        SqlError: if a condition is not one of an as-of join.
    """
    while True:
        joins = select.args.get("joins") or []
        at = next((i for i, join in enumerate(joins) if MARK in join.meta), None)
        if at is None:
            return select
        _join(select, joins[at], at, names)


def _join(select: exp.Select, join: exp.Join, at: int, names: Names) -> None:
    right = trees.alias_of(join.this)
    left = left_of(select, at)
    found = _conditions(join, left, right, names)
    outer = join.side.upper() == "LEFT"
    rest = [n for n in above(select, at) if n is not join]
    if outer and not read_of(rest, {right}):  # each row of the left side is there once, whatever it meets
        select.set("joins", [j for j in select.args["joins"] if j is not join])
        return
    later = [*rest, *found.after, *(found.left if outer else [])]
    mine, theirs = read_of(later, left), read_of(later, {right})
    named = columns([*mine, *theirs])
    select.set("joins", [j for j in select.args["joins"] if j is not join])
    ones = taken(select, at)
    if not outer:
        trees.set_where(ones, [*trees.where_of(ones), *found.left])
    both = _union(ones, join.this, found, named, len(mine))
    alias, below = names.fresh("d"), names.fresh("u")
    over = _over(both, below, found, named, len(mine), outer)
    values: Values = {old: trees.column(alias, named[old]) for old in (*mine, *theirs)}
    conditions = [*found.after, *(found.left if outer else [])]
    conditions = [trees.with_columns(exp.Paren(this=c.copy()), values) for c in conditions]
    if outer and conditions:
        met = trees.together([*conditions])
        for old in theirs:
            case = (
                exp.Case(ifs=[exp.If(this=met.copy(), true=values[old])]) if met is not None else values[old]
            )
            values[old] = case
    trees.with_columns(select, values)
    if not outer:
        trees.set_where(select, [*trees.where_of(select), *conditions])
    select.set("from_", exp.From(this=trees.derived(over, alias)))


def _conditions(join: exp.Join, left: set[str], right: str, names: Names) -> _Conditions:
    parts = trees.ands(join.args.get("on"))
    found = _Conditions()
    chosen: exp.Expr | None = parts[-1] if join.meta[MARK] == MATCH else None
    if join.meta[MARK] == LAST_OF_USING:
        last = parts[-1]
        chosen = exp.GTE(this=last.this, expression=last.expression)
        parts[-1] = chosen
    unsure: list[tuple[type[exp.Expr], exp.Expr, exp.Expr, exp.Expr]] = []
    for part in parts:
        reads = trees.reads(part)
        if reads <= left:
            found.left.append(part)
        elif reads <= {right}:
            found.right.append(part)
        elif (pair := _sides(part, left, right)) is None:
            raise names.error(f"{written(part)}: {_CONDITION}", part)
        elif pair[0] is exp.EQ:
            found.keys.append(pair[1:])
        elif part is chosen:
            found.nearest.append(pair)
        else:
            unsure.append((*pair, part))
    _choose(found, unsure, join, names)
    return found


_CONDITION = (
    "an as-of join takes equalities, one inequality of times such as a.at >= b.at, and a tolerance such as"
    " b.at >= a.at - INTERVAL 5 MINUTES; filter either side in a query of its own"
)


def _choose(
    found: _Conditions,
    unsure: list[tuple[type[exp.Expr], exp.Expr, exp.Expr, exp.Expr]],
    join: exp.Join,
    names: Names,
) -> None:
    """Tell the inequality of times from tolerances, which bound the same column of the right side."""
    if not found.nearest:
        plain = [u for u in unsure if trees.plain_column(u[1]) and trees.plain_column(u[2])]
        first = plain if len(plain) == 1 else unsure if len(unsure) == 1 else []
        if not first:
            raise names.error(_CONDITION, join.args.get("on") or join.this)
        found.nearest.append(first[0][:3])
        unsure = [u for u in unsure if u is not first[0]]
    time = {trees.text(c) for c in trees.columns_in(found.nearest[0][2])}
    for _, _, theirs, part in unsure:
        if {trees.text(c) for c in trees.columns_in(theirs)} != time:
            raise names.error(f"{written(part)}: {_CONDITION}", part)
        found.after.append(part)


def _sides(part: exp.Expr, left: set[str], right: str) -> tuple[type[exp.Expr], exp.Expr, exp.Expr] | None:
    """Return a comparison as (sign, left side, right side); None if it is none between the two."""
    if not isinstance(part, exp.EQ | exp.GTE | exp.GT | exp.LTE | exp.LT):
        return None
    one, two = part.this, part.expression
    if trees.reads(one) <= left and trees.reads(two) == {right}:
        return type(part), one, two
    if trees.reads(two) <= left and trees.reads(one) == {right}:
        return _MIRROR.get(type(part), type(part)), two, one
    return None


def _union(
    ones: exp.Select, source: exp.Expr, found: _Conditions, named: dict[tuple[str, str], str], mine: int
) -> exp.Union:
    """Both sides as one: the columns of either, keys, time, and which side it is."""
    twos = exp.Select(expressions=[], from_=exp.From(this=source.copy()))
    _, mine_at, theirs_at = found.nearest[0]
    known = [*(two for _, two in found.keys), theirs_at]
    trees.set_where(twos, [*(p.copy() for p in found.right), *map(_is_known, known)])
    for query, is_right in ((ones, False), (twos, True)):
        values: list[exp.Expr] = [
            trees.column(*old) if (at >= mine) == is_right else _void() for at, old in enumerate(named)
        ]
        values += [pair[is_right].copy() for pair in found.keys]
        values += [(theirs_at if is_right else mine_at).copy(), exp.Boolean(this=is_right)]
        texts = [*named.values(), *(f"$k{i}" for i in range(len(found.keys))), "$at", "$right"]
        query.set("expressions", [trees.named(v, name) for v, name in zip(values, texts, strict=True)])
    return exp.Union(this=ones, expression=twos, distinct=False)


def _void() -> exp.Null:
    """NULL of the type that the other side of the union has."""
    made = exp.Null()
    made.meta["void"] = True
    return made


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))


def _over(
    both: exp.Union,
    alias: str,
    found: _Conditions,
    named: dict[tuple[str, str], str],
    mine: int,
    outer: bool,
) -> exp.Select:
    """The rows of the left side with what the nearest row of the right side says."""
    sign = found.nearest[0][0]
    right = trees.column(alias, "$right")
    equal = sign in (exp.GTE, exp.LTE)
    order = exp.Order(
        expressions=[
            exp.Ordered(this=trees.column(alias, "$at"), desc=sign in (exp.LTE, exp.LT), nulls_first=True),
            exp.Ordered(this=right.copy(), desc=equal, nulls_first=True),
        ]
    )
    spec = exp.WindowSpec(
        kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW", end_side=None
    )

    def last(column: exp.Expr) -> exp.Window:
        call = exp.Filter(this=trees.call("last_value", column), expression=exp.Where(this=right.copy()))
        by = [trees.column(alias, f"$k{i}") for i in range(len(found.keys))]
        return exp.Window(this=call, partition_by=by, order=order.copy(), spec=spec.copy(), over="OVER")

    items = [
        trees.named(trees.column(alias, name) if at < mine else last(trees.column(alias, name)), name)
        for at, name in enumerate(named.values())
    ]
    keep: exp.Expr = exp.Not(this=right.copy())
    if not outer:
        items.append(trees.named(last(right.copy()), "$met"))
        keep = exp.And(this=keep, expression=exp.Column(this=trees.identifier("$met")))
    if not items:
        items = [trees.named(trees.true(), "$row")]
    select = exp.Select(expressions=items, from_=exp.From(this=trees.derived(both, alias)))
    select.set("qualify", exp.Qualify(this=keep))
    select.meta["over"] = True  # it is a block as it stands
    return select
