"""The rewrites of time and lists that need no more than the syntax: they come before names are resolved."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from sqlglot import exp

from joinlib.sql.rewrite.asof_syntax import asof_syntax
from joinlib.sql.rewrite.generators import generators
from joinlib.sql.rewrite.lengths import WindowText
from joinlib.sql.rewrite.window_calls import window_calls
from joinlib.sql.rewrite.window_tables import window_table

Tree = TypeVar("Tree", bound=exp.Expr)


def spoken(statement: Tree, sql: str, times: Mapping[str, str | None], lookups: Collection[str] = ()) -> Tree:
    """Rewrite all SELECTs of a statement in place; return it.

    times: the event-time column of each input; lookups: names of inputs that are tables.

    Raises:
        SqlError: at what cannot be read.
    """
    text = WindowText(sql)
    for table in reversed(list(statement.find_all(exp.Table))):
        if (derived := window_table(table, text)) is not None:
            table.replace(derived)
    for select in reversed(list(statement.find_all(exp.Select))):
        asof_syntax(select, text, times, lookups)
        window_calls(select, text)
        generators(select, text)
    return statement
