"""Lateral subqueries become joins, and LATERAL VIEW a query of its own.

    FROM o, LATERAL (SELECT i.x FROM i WHERE i.k = o.k ORDER BY i.t LIMIT 2) q
    FROM o JOIN (SELECT i.x, i.k FROM i QUALIFY row_number() OVER (PARTITION BY i.k ORDER BY i.t) <= 2) q ON q.k = o.k

Law: the same rows, as a bag.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import Names
from joinlib.sql.rewrite.pull import pulled


def joined_laterals(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite lateral subqueries in place; return the query."""
    for join in select.args.get("joins") or []:
        node = join.this
        if not isinstance(node, exp.Lateral):
            continue
        outputs = trees.output_names(node.this.this)
        found = pulled(node.this.this, select, names)
        one = found.always and found.having is None
        side = "LEFT" if join.side.upper() == "LEFT" or one else ""
        on = [*found.on, *trees.ands(join.args.get("on"))]
        if found.having is not None:
            on.append(found.having)
        join.set("this", trees.derived(found.query, found.alias))
        join.set("side", side)
        join.set("kind", None)
        join.set("on", trees.together(on) or trees.true())
        values = {(node.alias, name): value for name, value in zip(outputs, found.values)}
        trees.with_columns(select, values)
    return select


def views_below(select: exp.Select, names: Names) -> exp.Select:
    """Put LATERAL VIEW into a query of one source if there is more than that in this one."""
    laterals = select.args.get("laterals")
    if not laterals or not _more(select):
        return select
    select.set("laterals", None)
    given = {trees.alias_of(v): [c.name for c in v.args["alias"].columns] for v in laterals}
    wanted = _columns([*trees.parts_of(select), *laterals])
    own = set(trees.sources(select))
    joins = select.args.get("joins")
    below, above = names.fresh("j"), names.fresh("v")
    taken: set[str] = set()
    base, passed = exp.Select(), exp.Select()
    values: dict[tuple[str, str], exp.Expr] = {}
    inside: dict[tuple[str, str], exp.Expr] = {}
    for alias, column in wanted:
        name = _unique(column, taken)
        if alias in own:
            base.append("expressions", trees.named(trees.column(alias, column), name))
            inside[alias, column] = trees.column(below, name)
            passed.append("expressions", trees.named(trees.column(below, name), name))
        elif alias in given:
            passed.append("expressions", trees.named(trees.column(alias, column), name))
        else:
            continue
        values[alias, column] = trees.column(above, name)
    if not base.expressions:
        base.append("expressions", trees.named(trees.number(1), _unique("_c1", taken)))
    if not passed.expressions:
        passed.append("expressions", trees.named(trees.number(1), _unique("_c1", taken)))
    base.set("from_", select.args["from_"])
    base.set("joins", joins)
    select.set("joins", None)
    for view in laterals:
        trees.with_columns(view, inside)
    passed.from_(trees.derived(base, below), copy=False)
    passed.set("laterals", laterals)
    select.set("from_", None)
    trees.with_columns(select, values)
    return select.from_(trees.derived(passed, above), copy=False)


def _more(select: exp.Select) -> bool:
    if any(select.args.get(c) for c in ("joins", "group", "having", "distinct", "qualify")):
        return True
    if trees.is_grouped(select) or trees.has_windows(select):
        return True
    return any(trees.subqueries(part) for part in trees.parts_of(select))


def _columns(parts: list[exp.Expr]) -> list[tuple[str, str]]:
    found = ((trees.owner(c), trees.name_of(c)) for p in parts for c in trees.columns_in(p))
    return list(dict.fromkeys(found))


def _unique(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found.lower() in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found.lower())
    return found
