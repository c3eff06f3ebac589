"""The rewrites of time, lists and words of other dialects that need the syntax alone: before names are resolved."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from sqlglot import exp

from joinlib.sql.rewrite.any_calls import any_calls
from joinlib.sql.rewrite.asof_syntax import asof_syntax
from joinlib.sql.rewrite.fetch import fetch
from joinlib.sql.rewrite.generators import generators
from joinlib.sql.rewrite.lengths import WindowText
from joinlib.sql.rewrite.ordered_calls import ordered_calls
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
    fetch(statement, text)
    any_calls(statement)
    ordered_calls(statement, text)
    for table in reversed(list(statement.find_all(exp.Table))):
        if (derived := window_table(table, text)) is not None:
            table.replace(derived)
    for select in reversed(list(statement.find_all(exp.Select))):
        asof_syntax(select, text, times, lookups)
        window_calls(select, text)
        generators(select, text)
    return statement
