"""Moves what a query reads into a derived table below it.

    SELECT f(a.x) FROM a JOIN b ON ... JOIN c ON ...
    SELECT f(d.x) FROM (SELECT a.x AS x FROM a JOIN b ON ...) d JOIN c ON ...

Only columns that are read above are handed on. Queries are resolved.
"""

from collections.abc import Iterable

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.names import unique

Values = dict[tuple[str, str], exp.Expr]  # what columns (alias, name) have become


def left_of(select: exp.Select, joins: int) -> set[str]:
    """The aliases of FROM and of so many joins."""
    return {trees.alias_of(node) for node in trees.source_nodes(select)[: joins + 1]}


def read_of(nodes: Iterable[exp.Expr], aliases: set[str]) -> list[tuple[str, str]]:
    """The columns of these aliases that occur below the nodes, each once, in order."""
    found = (c for node in nodes for c in trees.columns_in(node))
    return list(dict.fromkeys((trees.owner(c), trees.name_of(c)) for c in found if trees.owner(c) in aliases))


def above(select: exp.Select, joins: int) -> list[exp.Expr]:
    """All parts of a query but FROM and so many joins."""
    rest = [*(select.args.get("joins") or [])[joins:], *(select.args.get("laterals") or [])]
    clauses = ("where", "group", "having", "qualify", "order")
    return [*select.expressions, *rest, *(p for n in clauses if (p := select.args.get(n)) is not None)]


def taken(select: exp.Select, joins: int) -> exp.Select:
    """Take FROM, so many joins, and the conditions of WHERE on them alone out of a query; they are a new one.

    The new query has no columns yet.
    """
    start, every = select.args["from_"], list(select.args.get("joins") or [])
    aliases = left_of(select, joins)
    mine = [p for p in trees.where_of(select) if not trees.subqueries(p) and trees.reads(p) <= aliases]
    if joins < len(every) and any(j.side.upper() in ("RIGHT", "FULL") for j in every[joins:]):
        mine = []
    trees.set_where(select, [p for p in trees.where_of(select) if not any(p is m for m in mine)])
    below = exp.Select(expressions=[], from_=exp.From(this=start.this.pop()))
    below.set("joins", [j.pop() for j in every[:joins]])
    trees.set_where(below, mine)
    select.set("joins", every[joins:])
    return below


def columns(read: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Give columns of several tables names that differ."""
    return dict(zip(read, unique([name for _, name in read]), strict=True))


def items(named: dict[tuple[str, str], str]) -> list[exp.Expr]:
    """The select list that hands columns on under their new names."""
    found: list[exp.Expr] = [trees.named(trees.column(*old), new) for old, new in named.items()]
    return found or [trees.named(trees.true(), "$row")]


def values(named: dict[tuple[str, str], str], alias: str) -> Values:
    """What the columns are called above the derived table."""
    return {old: trees.column(alias, new) for old, new in named.items()}
