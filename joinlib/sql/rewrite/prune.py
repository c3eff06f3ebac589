"""Drops columns of blocks that no later block reads.

Law: the blocks of results return the same rows, as a bag. Keys of groups stay, and what DISTINCT compares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from joinlib.sql.rewrite import trees
from joinlib.sql.rewrite.block import Block
from joinlib.sql.rewrite.single import ONE


def pruned(blocks: tuple[Block, ...], kept: Mapping[str, Sequence[str]]) -> tuple[Block, ...]:
    """Return the blocks with the columns that are read; their queries are changed in place.

    `kept`: what else is read, by the alias of the block that has it.
    """
    read: dict[str, set[str]] = {b.name: set() for b in blocks}
    found = list[Block]()
    for block in reversed(blocks):
        found.append(block if block.output is not None else _kept(block, read[block.name]))
        _collect(found[-1], read, kept)
    return tuple(reversed(found))


def _collect(block: Block, read: dict[str, set[str]], kept: Mapping[str, Sequence[str]]) -> None:
    """Add the columns that a block reads of earlier ones."""
    tables = {trees.alias_of(t): t.name for t in block.query.find_all(exp.Table)}
    for column in trees.columns_in(block.query):
        table = tables.get(trees.owner(column))
        if table in read:
            read[table].add(trees.name_of(column))
    for alias, table in tables.items():
        if table in read:
            read[table].update(kept.get(alias, ()))


def _kept(block: Block, read: set[str]) -> Block:
    query = block.query
    if query.args.get("distinct"):
        return block
    sides = list(query.find_all(exp.Select)) if block.kind == "union" else [query]
    wanted = set(read)
    if block.kind == "select" and (group := query.args.get("group")):
        keys = {trees.text(trees.bare(k)) for k in group.expressions}
        wanted |= {i.alias for i in query.expressions if trees.text(trees.bare(i.this)) in keys}
    wanted |= {i.alias for i in query.expressions if _fails(i)}
    if qualify := query.args.get("qualify"):
        wanted |= {c.name for c in qualify.find_all(exp.Column)}
    first = trees.output_names(query)
    places = [at for at, name in enumerate(first) if name in wanted] or [0]
    if block.kind == "select" and not _stays_grouped(query, places):
        places = sorted({*places, next(i for i, e in enumerate(query.expressions) if trees.aggregates(e))})
    for side in sides:
        side.set("expressions", [side.expressions[at] for at in places])
    if block.kind == "over" and not query.args.get("qualify") and not list(query.find_all(exp.Window)):
        return replace(block, kind="map")
    return block


def _fails(item: exp.Expr) -> bool:
    """Whether a column is there to stop the batch."""
    return any(call.name == ONE for call in item.find_all(exp.Anonymous))


def _stays_grouped(query: trees.Query, places: list[int]) -> bool:
    """Whether a query that groups still does if only these columns are left: without an aggregate, none says so."""
    if (
        not isinstance(query, exp.Select)
        or not trees.is_grouped(query)
        or query.args.get("group")
        or query.args.get("having")
    ):
        return True
    return any(trees.aggregates(query.expressions[at]) for at in places)
