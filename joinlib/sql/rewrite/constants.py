"""Rows of constants: VALUES, and SELECT without FROM.

    SELECT 1 AS a                 SELECT 1 AS a FROM (SELECT count(*) AS n FROM t WHERE FALSE) o
    VALUES (1), (2)               SELECT CASE i WHEN 0 THEN 1 WHEN 1 THEN 2 END AS col1 LATERAL VIEW explode(array(0, 1)) v AS i
    t JOIN (VALUES ...) q ON p    t JOIN LATERAL explode(array(0, 1)) v AS i ON p, with the CASEs for columns of q

A query without GROUP BY has its row also of no rows, so the constants are there from the first batch on; `t` is any stream of
the text. Law: the same rows, as a bag. Queries are resolved; those of VALUES are not yet.
"""

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.parse import place
from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.expansions import expansions
from joinlib.sql.rewrite.names import Names
from joinlib.sql.rewrite.pivots import choice, counter, each


def values(node: exp.Values, sql: str) -> exp.Select:
    """Return VALUES as an unresolved SELECT without FROM.

    Raises:
        SqlError: if its rows are not equally long.
    """
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    for row in rows:
        if len(row) != len(rows[0]):
            message = f"VALUES takes rows of equally many columns: {len(rows[0])} and {len(row)}"
            raise SqlError(message, *place(sql, row[0]))
    if len(rows) == 1:
        return exp.Select(expressions=[trees.named(v.copy(), f"col{i + 1}") for i, v in enumerate(rows[0])])
    number = counter()
    columns = enumerate(zip(*rows, strict=True))
    made = exp.Select(expressions=[trees.named(choice(number, c), f"col{i + 1}") for i, c in columns])
    made.set("laterals", [each(len(rows))])
    return made


def rooted(query: trees.Query, names: Names) -> trees.Query:
    """Give every SELECT of a resolved query without FROM a row to read; return the query."""
    for select in list(query.find_all(exp.Select)):
        if _joined(select):
            expansions(select, names)
    for select in list(query.find_all(exp.Select)):
        if select.args.get("from_") is None:
            _root(select, names)
    return query


def _joined(select: exp.Select) -> bool:
    """Let inner joins of constants be lateral joins of a list; tell whether there are any."""
    some = False
    joins = select.args.get("joins") or []
    start = select.args.get("from_")
    if (
        start is not None
        and joins
        and _is_list(start.this)
        and _inner(joins[0])
        and not _reads_back(joins[0])
    ):
        one, two = start.this, joins[0].this
        start.set("this", two)
        joins[0].set("this", one)
    for join in joins:
        if _inner(join) and _is_list(join.this):
            listed, some = join.this, True
            found = {(listed.alias, item.alias): item.this for item in listed.this.expressions}
            join.set("this", listed.this.args["laterals"][0])
            join.set("kind", None)
            join.set("on", join.args.get("on") or trees.true())
            trees.with_columns(select, found)
    return some


def _reads_back(join: exp.Join) -> bool:
    return isinstance(join.this, exp.Lateral | exp.Subquery) and bool(trees.outer_columns(join.this))


def _inner(join: exp.Join) -> bool:
    return not join.side and join.kind.upper() in ("", "INNER", "CROSS") and not join.method


def _is_list(node: exp.Expr) -> bool:
    """Whether a source is VALUES of several rows."""
    query = node.this if isinstance(node, exp.Subquery) else None
    return (
        isinstance(query, exp.Select)
        and query.args.get("from_") is None
        and len(query.args.get("laterals") or []) == 1
        and not any(
            query.args.get(c) for c in ("where", "group", "having", "qualify", "order", "limit", "offset")
        )
        and not query.args.get("distinct")
    )


def _root(select: exp.Select, names: Names) -> None:
    stream = next((name for name in names.read if name in names.streams), None)
    if stream is None:
        raise names.error(
            "there is no FROM: constants are told beside a stream; this text reads none", select
        )
    alias = names.fresh("one")
    row = exp.Select(expressions=[trees.named(trees.call("count", exp.Star()), "n")])
    row.from_(trees.table(stream, names.fresh(stream)), copy=False)
    row.set("where", exp.Where(this=exp.Boolean(this=False)))
    select.from_(trees.derived(row, alias), copy=False)
