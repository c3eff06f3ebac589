"""Writes FETCH as LIMIT.

    SELECT x FROM t ORDER BY y FETCH FIRST 3 ROWS ONLY        SELECT x FROM t ORDER BY y LIMIT 3

Law: the same rows. WITH TIES stays with the LIMIT, for `limits` to read.
"""

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.lengths import WindowText


def fetch(statement: exp.Expr, text: WindowText) -> None:
    """Rewrite a statement in place.

    Raises:
        SqlError: if it asks for a share of the rows, or for ties without an order.
    """
    for node in list(statement.find_all(exp.Fetch)):
        made = exp.Limit(
            expression=node.args.get("count") or trees.number(1), limit_options=node.args.get("limit_options")
        )
        node.replace(trees.placed(made, node))
    for limit in statement.find_all(exp.Limit):
        options = limit.args.get("limit_options")
        if options is None:
            continue
        if options.args.get("percent"):
            text.refuse(
                "PERCENT of the rows: how many that are changes with every row; write a number of rows", limit
            )
        if options.args.get("with_ties") and (limit.parent is None or not limit.parent.args.get("order")):
            text.refuse("WITH TIES needs ORDER BY, which says what is equal", limit)
        if not options.args.get("with_ties"):
            limit.set("limit_options", None)
