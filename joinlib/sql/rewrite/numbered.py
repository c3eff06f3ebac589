"""Moves a condition on a window function into the query that computes it, so that it keeps only these rows.

    SELECT a FROM (SELECT a, row_number() OVER (PARTITION BY k ORDER BY t) AS rn FROM x) q WHERE q.rn <= 3
    SELECT a FROM (SELECT a, row_number() OVER (PARTITION BY k ORDER BY t) AS rn FROM x QUALIFY rn <= 3) q

Law: the same rows, as a bag. It is done where no join can have filled the columns with NULL.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import Names


def numbered(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite WHERE and ON in place; return the query."""
    joins = select.args.get("joins") or []
    start = select.args.get("from_")
    if start is None:
        return select
    filled = {"RIGHT", "FULL"}
    for at, join in enumerate(joins):
        right = _query(join.this, names)
        side = join.side.upper()
        if right is not None and side not in filled:
            join.set("on", _moved(join.args.get("on"), join.this, right))
            if not side and join.kind.upper() not in ("SEMI", "ANTI") and not _fills(joins[at + 1 :]):
                _from_where(select, join.this, right)
    first = _query(start.this, names)
    if first is not None and not _fills(joins):
        _from_where(select, start.this, first)
    return select


def _fills(joins: list[exp.Join]) -> bool:
    return any(j.side.upper() in ("RIGHT", "FULL") for j in joins)


def _query(node: exp.Expr, names: Names) -> exp.Select | None:
    """The query of a source that nothing else reads, if it has window functions."""
    found = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(node, exp.Table) and node.name in names.definitions:
        definition = names.definitions[node.name]
        found = definition.query if definition.uses == 1 else None
    if not isinstance(found, exp.Select) or found.meta.get("over") or not trees.has_windows(found):
        return None
    return None if any(found.args.get(c) for c in ("distinct", "limit", "offset")) else found


def _from_where(select: exp.Select, node: exp.Expr, query: exp.Select) -> None:
    trees.set_where(select, trees.ands(_moved(trees.together(trees.where_of(select)), node, query)))


def _moved(condition: exp.Expr | None, node: exp.Expr, query: exp.Select) -> exp.Expr | None:
    """Move what can be moved; return the rest."""
    alias = trees.alias_of(node)
    numbers = {(alias, i.alias): i.this for i in query.expressions if trees.windows(i)}
    kept: list[exp.Expr] = []
    moved: list[exp.Expr] = []
    for part in trees.ands(condition):
        read = [(trees.owner(c), trees.name_of(c)) for c in trees.columns_in(part)]
        mine = bool(read) and all(c in numbers for c in read) and not trees.subqueries(part)
        (moved if mine else kept).append(part)
    if moved:
        before = query.args.get("qualify")
        boxes = [exp.Paren(this=p.copy()) for p in moved]
        new = [trees.with_columns(b, numbers).this for b in boxes]
        whole = trees.together([*trees.ands(before.this if before else None), *new])
        query.set("qualify", exp.Qualify(this=whole))
    return trees.together(kept) or (trees.true() if condition is not None else None)
