"""Writes a derived table that only joins and filters into the query that reads it.

    SELECT x.a FROM (SELECT t.a FROM t JOIN u ON t.k = u.k WHERE u.b > 1) x JOIN v ON v.a = x.a
    SELECT t.a FROM t JOIN u ON t.k = u.k JOIN v ON v.a = t.a WHERE u.b > 1

so that the planner sees one join of all. Law: the same rows, as a bag. It is done where the derived table
comes first or is joined by INNER, and no later join can fill its columns with NULL.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees


def inlined(select: exp.Select) -> exp.Select:
    """Rewrite FROM in place, from the left, until nothing more can be written into it."""
    while _step(select):
        pass
    return select


def _step(select: exp.Select) -> bool:
    start = select.args.get("from_")
    joins = list(select.args.get("joins") or [])
    if start is None or (select.args.get("laterals") and not joins):
        return False
    if _whole(start.this, True, select) and not any(_fills(j) for j in joins):
        _first(select, start.this.this, joins)
        return True
    for at, join in enumerate(joins):
        inner = join.side == "" and join.kind.upper() in ("", "INNER", "CROSS")
        if inner and not any(_fills(j) for j in joins[at + 1 :]) and _whole(join.this, False, select):
            _joined(select, joins, at)
            return True
        if join.kind.upper() in ("SEMI", "ANTI", "") and join.side in ("", "LEFT") and _one_table(join):
            _narrowed(select, join)
            return True
    return False


def _fills(join: exp.Join) -> bool:
    return join.side.upper() in ("RIGHT", "FULL")


def _plain(node: exp.Expr) -> bool:
    """Whether a source is a derived table that only joins and filters."""
    if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Select):
        return False
    query = node.this
    clauses = ("group", "having", "distinct", "qualify", "order", "limit", "offset", "laterals")
    if any(query.args.get(c) for c in clauses) or query.meta.get("over") or trees.outer_columns(query):
        return False
    if trees.is_grouped(query) or trees.has_windows(query) or not query.args.get("from_"):
        return False
    return not any(trees.subqueries(item) for item in query.expressions)


def _whole(node: exp.Expr, first: bool, into: exp.Select) -> bool:
    if not isinstance(node, exp.Subquery) or not _plain(node):
        return False
    if trees.is_grouped(into) and any(not item.find(exp.Column) for item in node.this.expressions):
        return False  # a number in GROUP BY would count columns
    joins = node.this.args.get("joins") or []
    if any(isinstance(j.this, exp.Lateral) for j in joins):
        return False
    return first or all(j.side == "" and j.kind.upper() in ("", "INNER", "CROSS") for j in joins)


def _one_table(join: exp.Join) -> bool:
    """Whether the right side of LEFT, SEMI or ANTI JOIN is columns of one table, filtered."""
    if not _plain(join.this) or join.this.this.args.get("joins"):
        return False
    query = join.this.this
    if any(trees.subqueries(part) for part in trees.where_of(query)):
        return False
    return all(trees.plain_column(item.this) is not None for item in query.expressions)


def _values(node: exp.Subquery) -> dict[tuple[str, str], exp.Expr]:
    return {(node.alias, item.alias): item.this for item in node.this.expressions}


def _first(select: exp.Select, query: exp.Select, joins: list[exp.Join]) -> None:
    old = select.args["from_"].this
    select.set("from_", exp.From(this=query.args["from_"].this))
    select.set("joins", [*(query.args.get("joins") or []), *joins])
    trees.set_where(select, [*trees.where_of(query), *trees.where_of(select)])
    trees.with_columns(select, _values(old))


def _joined(select: exp.Select, joins: list[exp.Join], at: int) -> None:
    join, query = joins[at], joins[at].this.this
    values = _values(join.this)
    first = exp.Join(this=query.args["from_"].this)
    moved = trees.ands(join.args.get("on"))
    more = query.args.get("joins") or []
    if not more and moved:
        first.set("on", trees.together(moved))
        moved = []
    select.set("joins", [*joins[:at], first, *more, *joins[at + 1 :]])
    trees.set_where(select, [*trees.where_of(query), *moved, *trees.where_of(select)])
    trees.with_columns(select, values)


def _narrowed(select: exp.Select, join: exp.Join) -> None:
    query, values = join.this.this, _values(join.this)
    join.set("this", query.args["from_"].this)
    trees.set_on(join, [*trees.ands(join.args.get("on")), *trees.where_of(query)])
    trees.with_columns(select, values)
