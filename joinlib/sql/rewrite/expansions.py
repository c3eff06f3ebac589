"""Brings LATERAL VIEW and lateral joins of generators into the form of a map.

    SELECT o.k, count(*) FROM o JOIN c ON ... LATERAL VIEW explode(o.tags) v AS tag GROUP BY o.k
    SELECT m.k, count(*) FROM (SELECT j.k AS k FROM (SELECT o.k AS k, o.tags AS tags FROM o JOIN c ON ...) j
                               LATERAL VIEW explode(j.tags) v AS tag) m GROUP BY m.k

Law: the same rows, as a bag.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.below import above, columns, items, left_of, read_of, taken, values
from joinlib.sql.rewrite.names import Names


def expansions(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite a resolved SELECT in place; return it."""
    while (at := _lateral_join(select)) is not None:
        join = select.args["joins"][at]
        _moved(select, at, [join.this], names, and_where=join.args.get("on"))
    if select.args.get("laterals") and not _is_map(select):
        _moved(select, len(select.args.get("joins") or []), list(select.args["laterals"]), names)
    _count_from_one(select, select.args.get("laterals") or [])
    return select


def _lateral_join(select: exp.Select) -> int | None:
    joins = select.args.get("joins") or []
    return next((i for i, j in enumerate(joins) if is_expansion(j.this)), None)


def is_expansion(node: exp.Expr) -> bool:
    """Whether a source is a generator."""
    return isinstance(node, exp.Lateral) and isinstance(node.this, exp.Anonymous)


def _is_map(select: exp.Select) -> bool:
    clauses = ("joins", "group", "having", "distinct", "qualify", "order", "limit", "offset")
    if any(select.args.get(c) for c in clauses) or trees.is_grouped(select) or trees.has_windows(select):
        return False
    parts = [*select.expressions, *trees.where_of(select)]
    return not any(trees.subqueries(part) for part in parts)


def _moved(
    select: exp.Select, joins: int, laterals: list[exp.Expr], names: Names, and_where: exp.Expr | None = None
) -> None:
    """Move FROM, so many joins and then the laterals into a derived table."""
    kept = [p for p in trees.ands(and_where) if not (isinstance(p, exp.Boolean) and p.this)]
    if any(trees.subqueries(part) for part in kept):  # a map has none
        trees.set_where(select, [*trees.where_of(select), *kept])
        kept = []
    if any(is_expansion(j.this) for j in select.args.get("joins") or []):
        select.set("joins", [j for j in select.args["joins"] if j.this is not laterals[0]])
    else:
        select.set("laterals", None)
    left = left_of(select, joins)
    added = {trees.alias_of(lateral) for lateral in laterals}
    read = read_of([*above(select, joins), *laterals, *kept], left)
    below = taken(select, joins)
    if joins:
        named = columns(read)
        below.set("expressions", items(named))
        inner = names.fresh("j")
        below = exp.Select(expressions=[], from_=exp.From(this=trees.derived(below, inner)))
        for lateral in laterals:
            trees.with_columns(lateral, values(named, inner))
        box = exp.Tuple(expressions=kept)
        kept = trees.with_columns(box, values(named, inner)).expressions
        outer = values(named, inner)
    else:
        outer = {}
    trees.set_where(below, [*trees.where_of(below), *kept])
    below.set("laterals", [lateral.pop() for lateral in laterals])
    for lateral in below.args["laterals"]:
        lateral.set("view", True)
    alias = names.fresh("m")
    mine = read_of(above(select, 0), left | added)
    if not joins:
        others = dict.fromkeys(names.kept.get(alias, ())).keys() - {name for _, name in mine}
        mine += [(source, name) for source in left for name in sorted(others)]
    named = columns(mine)
    made = [
        trees.named(outer[old].copy() if old in outer else trees.column(*old), new)
        for old, new in named.items()
    ]
    below.set("expressions", made or [trees.named(trees.true(), "$row")])
    _count_from_one(below, below.args["laterals"])
    trees.with_columns(select, values(named, alias))
    select.set("from_", exp.From(this=trees.derived(below, alias)))


def _count_from_one(select: exp.Select, laterals: list[exp.Lateral]) -> None:
    """WITH ORDINALITY counts from 1, posexplode from 0."""
    changed = {}
    for lateral in laterals:
        if lateral.meta.pop("ordinal", False):
            alias, name = trees.alias_of(lateral), lateral.args["alias"].columns[0].name
            one_more = exp.Add(this=trees.column(alias, name), expression=exp.Literal.number(1))
            changed[alias, name] = exp.Paren(this=one_more)
    if changed:
        for item in select.expressions:
            trees.with_columns(item, changed)
        for part in trees.where_of(select):
            trees.with_columns(part, changed)
