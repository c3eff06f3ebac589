"""Gives rows their sessions below the groups that ask for them.

    SELECT t.k, $session_start(t.at, gap), count(*) FROM t GROUP BY t.k, $session_start(t.at, gap)
    SELECT d.k, d.start, count(*) FROM (
        SELECT t.k AS k, $session_start(t.at, gap) OVER (PARTITION BY t.k ORDER BY t.at) AS start FROM t) d
    GROUP BY d.k, d.start

Law: the sessions of a group are those of the rows with its other keys.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.below import above, columns, items, left_of, read_of, values
from joinlib.sql.rewrite.names import Names

_NAMES = ("$session_start", "$session_end")


def sessions(select: exp.Select, names: Names) -> exp.Select:
    """Rewrite a resolved SELECT in place; return it.

    Raises:
        SqlError: if sessions are asked for without GROUP BY, or by several lengths.
    """
    calls = [c for part in above(select, 0) for c in part.find_all(exp.Anonymous) if _is_bare(c)]
    if not calls:
        return select
    group = select.args.get("group")
    if group is None or any(group.args.get(n) for n in ("grouping_sets", "rollup", "cube")):
        raise names.error("a session window is a group: write GROUP BY keys, session_window(...)", calls[0])
    if len({trees.text(exp.Tuple(expressions=[e.copy() for e in c.expressions])) for c in calls}) > 1:
        raise names.error("a query has one session window; ask for the other in a query of its own", calls[0])
    keys = [k for k in group.expressions if not any(_is_bare(n) for n in k.find_all(exp.Anonymous))]
    joins, alias = len(select.args.get("joins") or []), names.fresh("s")
    made = {n: trees.named(_over(calls[0], n, keys), n) for n in _NAMES}
    for part in above(select, joins):
        trees.replaced(part, lambda n: trees.column(alias, str(n.name), n) if _is_bare(n) else None)
    aliases = left_of(select, joins)
    where = select.args.get("where")
    select.set("where", None)
    named = columns(read_of(above(select, joins), aliases))
    below = exp.Select(expressions=[*items(named), *made.values()], from_=select.args["from_"])
    below.set("joins", select.args.get("joins"))
    below.set("laterals", select.args.get("laterals"))
    below.set("where", where)
    select.set("joins", None)
    select.set("laterals", None)
    trees.with_columns(select, values(named, alias))
    select.set("from_", exp.From(this=trees.derived(below, alias)))
    return select


def _is_bare(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.Anonymous)
        and str(node.name) in _NAMES
        and not isinstance(node.parent, exp.Window)
    )


def _over(call: exp.Anonymous, name: str, keys: list[exp.Expr]) -> exp.Window:
    time, gap = call.expressions
    order = exp.Order(expressions=[exp.Ordered(this=time.copy(), desc=False, nulls_first=True)])
    asked = exp.Anonymous(this=name, expressions=[time.copy(), gap.copy()])
    return exp.Window(this=asked, partition_by=[k.copy() for k in keys], order=order, over="OVER")
