"""What a text says that its writer may not mean. Law: a note changes nothing, and names what to write instead."""

from collections.abc import Iterator

from sqlglot import exp

from joinlib.sql.depth import with_room
from joinlib.sql.parse import parse_query


def notes(sql: str) -> tuple[str, ...]:
    """Return what is to be said of a query that can be run, each once."""
    tree = with_room(lambda: parse_query(sql))
    return tuple(dict.fromkeys([*_natural(tree), *_ordered(tree)]))


def _natural(tree: exp.Expr) -> Iterator[str]:
    for join in tree.find_all(exp.Join):
        if str(join.args.get("method") or "").upper() == "NATURAL":
            yield (
                f"NATURAL JOIN {join.this.alias_or_name}: its keys are the columns that both sides have, and others once a"
                " schema has more; write USING (...)"
            )


def _cut(query: exp.Expr) -> bool:
    """Whether the order decides which rows there are."""
    return any(query.args.get(part) for part in ("limit", "offset"))


def _ordered(tree: exp.Expr) -> Iterator[str]:
    for order in tree.find_all(exp.Order):
        above = order.parent
        if isinstance(above, exp.Select | exp.SetOperation | exp.Subquery) and not _cut(above):
            yield "ORDER BY without LIMIT changes nothing: a stream has no last row; sort the output where it is read"
