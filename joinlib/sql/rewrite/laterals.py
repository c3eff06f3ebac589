"""Lateral subqueries become joins, and LATERAL VIEW a query of its own.

    FROM o, LATERAL (SELECT i.x FROM i WHERE i.k = o.k ORDER BY i.t LIMIT 2) q
    FROM o JOIN (SELECT i.x, i.k FROM i QUALIFY row_number() OVER (PARTITION BY i.k ORDER BY i.t) <= 2) q ON q.k = o.k

Law: the same rows, as a bag.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.domain import single_row
from joinlib.sql.rewrite.names import Names
from joinlib.sql.rewrite.pull import Pulled, pulled


def joined_laterals(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite lateral subqueries in place; return the query."""
    joins = select.args.get("joins") or []
    for number, join in enumerate(joins):
        node = join.this
        if not isinstance(node, exp.Lateral):
            continue
        if join.side.upper() in ("RIGHT", "FULL") or join.kind.upper() in ("SEMI", "ANTI"):
            raise names.error("LATERAL is supported with JOIN and LEFT JOIN", node)
        later = next((j for j in joins[number + 1 :] if j.side.upper() in ("RIGHT", "FULL")), None)
        query, alias = node.this.this, node.alias
        outputs = trees.output_names(query)
        values = (
            _one_row(select, join, names, later)
            if single_row(query)
            else _rows(select, join, names, later is not None)
        )
        trees.with_columns(select, {(alias, name): value for name, value in zip(outputs, values)})
    return select


def _rows(select: exp.Select, join: exp.Join, names: Names, later: bool) -> list[exp.Expr]:
    """Join the rows of a lateral subquery; return its columns.

    `later`: a later join adds rows in which they are NULL.
    """
    query = join.this.this.this
    outputs = trees.output_names(query)
    extended = later or join.side.upper() == "LEFT"
    marked = extended and isinstance(query, exp.Select) and any(map(trees.outer_columns, query.expressions))
    if marked:
        query.append("expressions", trees.named(trees.number(1), names.hidden(query)))
    found = pulled(query, select, names)
    _join(join, found, join.side)
    join.set("on", trees.together([*found.on, *trees.ands(join.args.get("on"))]) or trees.true())
    if not marked:
        return found.values
    there = exp.Not(this=exp.Is(this=found.values[-1].copy(), expression=exp.Null()))
    values = found.values[: len(outputs)]
    return [v if _of(v, found.alias) else _where(there, v) for v in values]


def _one_row(select: exp.Select, join: exp.Join, names: Names, later: exp.Join | None) -> list[exp.Expr]:
    """Join the one row of aggregates, which is there for no rows too; return its columns.

    Whether it is there, by HAVING and ON, is known only from values of the rows that are joined.
    """
    node = join.this
    outputs = trees.output_names(node.this.this)
    found = pulled(node.this.this, select, names)
    inner = {(node.alias, name): value for name, value in zip(outputs, found.values)}
    on = exp.Paren(this=join.args.get("on") or trees.true())
    trees.with_columns(on, inner)
    having = found.having.copy() if found.having is not None else None
    present = trees.together([*trees.ands(having), *trees.ands(on)])
    if later is not None and (present is not None or found.counts):
        raise names.error(
            f"LATERAL of aggregates without GROUP BY before {later.side.upper()} JOIN is not supported; join a"
            " derived table of both",
            node,
        )
    left = join.side.upper() == "LEFT"
    if present is not None and left and trees.subqueries(present):
        raise names.error(
            "a subquery in the ON of an outer join with LATERAL is not supported; write it within LATERAL",
            present,
        )
    _join(join, found, "LEFT")
    join.set("on", trees.together(found.on) or trees.true())
    if present is None:
        return found.values
    if left:
        return [_where(present, value) for value in found.values]
    trees.set_where(select, [*trees.where_of(select), present])
    return found.values


def _join(join: exp.Join, found: Pulled, side: str) -> None:
    join.set("this", trees.derived(found.query, found.alias))
    join.set("side", side)
    join.set("kind", None)


def _of(value: exp.Expr, alias: str) -> bool:
    return isinstance(value, exp.Column) and trees.owner(value) == alias


def _where(there: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=there.copy(), true=value)])


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
