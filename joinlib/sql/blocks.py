"""Cuts a text into blocks, each of which one operator computes.

    text -> names (what means what) -> small rewrites, each the same rows -> blocks

Law: the blocks, written as WITH, return what the text returns.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.model.stored import StoredColumns
from joinlib.sql.depth import with_room
from joinlib.sql.graph import Table
from joinlib.sql.hints import taken
from joinlib.sql.mistakes import told_together
from joinlib.sql.parse import parse, parse_query
from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.block import Block, Kind
from joinlib.sql.rewrite.constants import rooted
from joinlib.sql.rewrite.cut import Cutter
from joinlib.sql.rewrite.names import Names
from joinlib.sql.rewrite.spoken import spoken

__all__ = ["Block", "Kind", "as_text", "blocks", "of_several"]

_NO_VIEWS: Mapping[str, str] = {}
_NOTHING = StoredColumns()


def blocks(
    sql: str,
    tables: Mapping[str, Table],
    views: Mapping[str, str] = _NO_VIEWS,
    stored: StoredColumns = _NOTHING,
) -> tuple[Block, ...]:
    """Return the blocks of a query, in an order in which each reads earlier ones; the last is the result.

    `views`: queries by the name by which the text, and other views, may read them. `stored`: what later blocks are
    said to read besides what they read.

    Raises:
        SqlError: if the text is not a query that can be computed.
    """
    return with_room(lambda: _blocks(sql, tables, views, stored, several=False))


def of_several(sql: str, tables: Mapping[str, Table], stored: StoredColumns = _NOTHING) -> tuple[Block, ...]:
    """Return the blocks of the queries that a text defines for several outputs (`sql.text.program`).

    What several of them read is a block once.

    Raises:
        SqlError: if one of them is not a query that can be computed.
    """
    return with_room(lambda: _blocks(sql, tables, _NO_VIEWS, stored, several=True))


def _blocks(
    sql: str,
    tables: Mapping[str, Table],
    views: Mapping[str, str],
    stored: StoredColumns,
    *,
    several: bool,
) -> tuple[Block, ...]:
    times = {name: table.time for name, table in tables.items()}
    lookups = [name for name, table in tables.items() if not table.stream]
    parsed = {name: spoken(_plain(text), text, times, lookups) for name, text in views.items()}
    names = Names(sql, {name: tuple(t.schema.names) for name, t in tables.items()}, parsed)
    names.kept = _kept(stored)
    names.streams = frozenset(tables) - frozenset(lookups)
    tree = spoken(_plain(sql), sql, times, lookups)
    with told_together(names.unknown):
        found = names.results(tree) if several else {"": names.result(tree)}
    for definition in names.definitions.values():
        definition.query = rooted(definition.query, names)
    return Cutter(names).results({output: rooted(query, names) for output, query in found.items()})


def _kept(stored: StoredColumns) -> Mapping[str, list[str]]:
    """Return the columns that inputs of stages store, and those that aggregates read, by alias."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for qualified in sorted(name for names in stored.inputs.values() for name in names):
        alias, _, name = qualified.partition(".")
        found[alias].append(name)
    for text in (text for each in stored.groups.values() for calls in each for text in calls.of):
        with suppress(SqlError):  # then no aggregate is kept
            for column in trees.columns_in(parse(f"SELECT {text}")):
                found[trees.owner(column)].append(trees.name_of(column))
    return found


def _plain(sql: str) -> exp.Select | exp.SetOperation | exp.Subquery:
    """Return the tree of a text without its hints, which decide nothing here."""
    tree = parse_query(sql)
    taken(tree)
    return tree


def as_text(parts: tuple[Block, ...], dialect: str = "spark") -> str:
    """Write blocks as one query."""
    *first, last = parts
    if not first:
        return last.query.sql(dialect=dialect)
    ctes = [
        exp.CTE(this=b.query.copy(), alias=exp.TableAlias(this=exp.Identifier(this=b.name, quoted=True)))
        for b in first
    ]
    whole = last.query.copy()
    whole.set("with_", exp.With(expressions=ctes))
    return whole.sql(dialect=dialect)
