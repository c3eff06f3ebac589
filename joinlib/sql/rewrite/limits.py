"""ORDER BY ... LIMIT n keeps the rows whose number in that order is at most n; ORDER BY alone is dropped.

    SELECT x FROM t ORDER BY y LIMIT 3
    SELECT x FROM t QUALIFY row_number() OVER (ORDER BY y) <= 3        WITH TIES: rank()

Law: the same rows, as a bag. Rows that are equal in the order are told apart by row_number.
"""

from collections.abc import Mapping

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import Names


def limited(select: exp.Select, names: Names) -> exp.Select:
    """Return the query without ORDER BY, LIMIT and OFFSET.

    Raises:
        SqlError: if LIMIT or OFFSET is not a whole number.
    """
    limit, offset = select.args.get("limit"), select.args.get("offset")
    order = select.args.get("order")
    if isinstance(limit, exp.Limit) and limit.expression.name.upper() == "ALL":
        select.set("limit", None)
        limit = None
    if limit is None and offset is None:
        select.set("order", None)
        return select
    for name in ("limit", "offset", "order"):
        select.set(name, None)
    if _one_row(select) and (limit is None or _number(limit, names) > 0) and offset is None:
        return select
    low = _number(offset, names) if offset is not None else 0
    high = low + _number(limit, names) if limit is not None else None
    keys = list(order.expressions) if order is not None else []
    computed = any(trees.windows(key) for key in keys)  # by the query itself, and not again for its order
    if computed or select.args.get("distinct") or select.args.get("qualify"):
        select, keys = _around(select, keys, names)
    keys = keys or [exp.Ordered(this=item.this.copy(), nulls_first=True) for item in select.expressions]
    if not any(key.find(exp.Column, exp.Select, exp.Anonymous) for key in keys):
        keys = [exp.Ordered(this=_something(select, names), nulls_first=True)]  # all rows are the same
    ties = limit is not None and limit.args.get("limit_options") is not None
    _keep(select, keys, low, high, "rank" if ties else "row_number")
    return select


def _something(select: exp.Select, names: Names) -> exp.Expr:
    """A value that rows can be counted by where the query returns constants alone."""
    if trees.is_grouped(select):
        return trees.call("count", exp.Star())
    source = select.args["from_"].this
    if isinstance(source, exp.Subquery):
        columns = trees.output_names(source.this)
    elif source.name in names.definitions:
        columns = list(names.definitions[source.name].rows.columns)
    else:
        columns = list(names.tables.get(source.name, ()))
    if not columns:
        raise names.error("LIMIT over constants alone: write ORDER BY a column", select)
    return trees.column(trees.alias_of(source), columns[0])


def _one_row(select: exp.Select) -> bool:
    return trees.is_grouped(select) and not select.args.get("group")


def _number(node: exp.Expr, names: Names) -> int:
    value = node.args.get("expression") or node.this
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal():
        return int(value.name)
    raise names.error(f"{node.key.upper()} takes a whole number", node)


def _keep(select: exp.Select, keys: list[exp.Expr], low: int, high: int | None, last: str) -> None:
    """Keep the rows after number `low` whose place, which the call `last` tells, is at most `high`."""

    def place(call: str) -> exp.Expr:
        order = exp.Order(expressions=[key.copy() for key in keys])
        return exp.Window(this=trees.call(call), order=order, over="OVER")

    parts: list[exp.Expr] = []
    if high is not None:
        parts.append(exp.LTE(this=place(last), expression=trees.number(high)))
    if low:
        parts.append(exp.GT(this=place("row_number"), expression=trees.number(low)))
    condition = trees.together(parts)
    if condition is not None:
        select.set("qualify", exp.Qualify(this=condition))


def _around(select: exp.Select, keys: list[exp.Expr], names: Names) -> tuple[exp.Select, list[exp.Expr]]:
    """Put a query below one that can count its rows; the keys become columns of it."""
    alias = names.fresh("q")
    outer = [i.alias for i in select.expressions]
    known = {trees.text(trees.bare(i.this)): i.alias for i in select.expressions}
    made = []
    for key in keys:
        new = key.copy()
        if (value := _of_items(key.this, known, alias)) is not None:
            new.set("this", value)
            made.append(new)
            continue
        words = trees.text(trees.bare(key.this))
        if words not in known and select.args.get("distinct"):
            raise names.error("ORDER BY of SELECT DISTINCT takes columns of its select list", key)
        if words not in known:
            known[words] = _called(key.this, select) or names.hidden(select)
            select.append("expressions", trees.named(key.this.copy(), known[words]))
        new.set("this", trees.column(alias, known[words], key))
        made.append(new)
    items = [trees.named(trees.column(alias, name), name) for name in outer]
    return exp.Select(expressions=items).from_(trees.derived(select, alias), copy=False), made


def _of_items(value: exp.Expr, known: Mapping[str, str], alias: str) -> exp.Expr | None:
    """The value over output columns of the query that is called so; None if it reads others.

    `known`: names of output columns by their texts.
    """
    box = exp.Paren(this=value.copy())

    def change(node: exp.Expr) -> exp.Expr | None:
        name = known.get(trees.text(trees.bare(node))) if node.find(exp.Column) is not None else None
        return None if name is None else trees.column(alias, name, node)

    trees.replaced(box.this, change)
    found = box.this
    rest = found.find(exp.Select, exp.Window, exp.Anonymous) or any(
        trees.owner(column) != alias for column in trees.columns_in(found)
    )
    return None if rest or found.find(exp.Column) is None else found


def _called(value: exp.Expr, select: exp.Select) -> str:
    """The name of a column that no output column has; "" if it is none, or its name is taken."""
    column = trees.plain_column(value)
    taken = {i.alias.lower() for i in select.expressions}
    return "" if column is None or trees.name_of(column).lower() in taken else trees.name_of(column)
