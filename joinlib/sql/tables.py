"""Separates lookups from joins of streams.

Law: streams are joined first, then tables are looked up, in order.

    orders o JOIN customers c ON o.customer = c.id LEFT JOIN ships s ON o.id = s.order_id
        = (orders o LEFT JOIN ships s ON o.id = s.order_id), then customers by o.customer

That gives the same rows, because a lookup reads only the rows that it is given: it commutes with every join
whose condition does not use its columns. So a table is allowed on the right of INNER, LEFT, SEMI or ANTI
joins ([NOT] EXISTS, IN), and no join of streams may use its columns.
"""

from dataclasses import dataclass, replace

from joinlib.errors import SqlError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.compare import MIRROR, Comparison
from joinlib.sql.graph import (
    At,
    Clause,
    Joined,
    LookupJoin,
    LookupKind,
    RangeEnd,
    Scan,
    Tree,
    aliases,
    passing,
    scans,
)
from joinlib.sql.keys import check_types

Aliases = frozenset[str]


@dataclass(frozen=True)
class _TableRef:
    """A table to look up, with the clauses of its join and those above it."""

    kind: LookupKind
    scan: Scan
    on: tuple[Clause, ...]
    where: tuple[Clause, ...] = ()


def take_out(tree: Tree, at: At) -> tuple[Tree, tuple[LookupJoin, ...]]:
    """Return the tree of streams, and the lookups that follow it, in an order in
    which each finds the columns it needs.

    Raises:
        SqlError: if a table is where it cannot be looked up.
    """
    streams, asked = _out(tree, at)
    known = streams.aliases
    found = []
    for one in asked:
        found.append(_lookup(one, known, at))
        known |= one.scan.aliases
    return streams, tuple(found)


def _is_table(tree: Tree) -> bool:
    return isinstance(tree, Scan) and not tree.table.stream


def _tables(tree: Tree) -> list[Scan]:
    return [s for s in scans(tree) if not s.table.stream]


def _out(tree: Tree, at: At) -> tuple[Tree, list[_TableRef]]:
    if isinstance(tree, Scan):
        if _is_table(tree):
            raise SqlError(
                f"{tree.alias} is a table, whose rows are only looked up for rows of a stream; begin with a"
                f" stream, and write JOIN or LEFT JOIN {tree.table.name}",
                *at(tree),
            )
        return tree, []
    if tree.kind == "inner":
        return _inner(tree, at)
    left, right = tree.children
    if tree.kind != "full" and isinstance(right, Scan) and _is_table(right):
        streams, asked = _out(left, at)
        return streams, [*asked, _TableRef(tree.kind, right, tree.on, tree.where)]
    if tree.kind == "full" or _tables(right):
        for table in (*_tables(right), *_tables(left)):
            raise SqlError(
                f"{table.alias} is a table, which is joined by INNER, LEFT, SEMI or ANTI JOIN, or alone in"
                " EXISTS, after the joins of streams",
                *at(table),
            )
        return tree, []
    streams, asked = _out(left, at)
    return _above(replace(tree, children=(streams, right)), asked)


def _above(tree: Joined, asked: list[_TableRef]) -> tuple[Tree, list[_TableRef]]:
    """Move lookups from below a join of streams to above it."""
    tables = frozenset().union(*(a.scan.aliases for a in asked))
    _not_on(tree, tables)
    late = [c for c in tree.where if c.aliases & tables]
    return replace(tree, where=tuple(c for c in tree.where if c not in late)), _attached(asked, late)


def _not_on(tree: Joined, tables: Aliases) -> None:
    for clause in tree.on:
        if clause.aliases & tables:
            raise SqlError(
                f"{clause.value.excerpt} decides which rows of streams match, by a column of a table; lookups"
                " come last: join the streams by their own columns",
                *clause.place,
            )


def _attached(asked: list[_TableRef], late: list[Clause]) -> list[_TableRef]:
    """Attach each late clause to the first lookup after which all its tables are known."""
    result, seen = [], frozenset[str]()
    tables = frozenset().union(*(a.scan.aliases for a in asked))
    for one in asked:
        seen |= one.scan.aliases
        ready = [c for c in late if c.aliases & tables <= seen]
        late = [c for c in late if c not in ready]
        result.append(replace(one, where=(*one.where, *ready)))
    return result


def _inner(tree: Joined, at: At) -> tuple[Tree, list[_TableRef]]:
    own = [c for c in tree.children if isinstance(c, Scan) and _is_table(c)]
    below = [_out(c, at) for c in tree.children if c not in own]
    if not below:
        raise SqlError("a query needs a stream: all its inputs are tables", *at(own[0]))
    streams, asked = [s for s, _ in below], [a for _, more in below for a in more]
    tables = frozenset().union(*(s.aliases for s in own), *(a.scan.aliases for a in asked))
    late = [c for c in tree.on if c.aliases & tables]
    early = tuple(c for c in tree.on if c not in late)
    rest = (
        replace(tree, children=tuple(streams), on=early) if len(streams) > 1 else passing(streams[0], early)
    )
    known = rest.aliases.union(*(a.scan.aliases for a in asked))
    asked = _attached(
        asked, [c for c in late if not c.aliases & frozenset().union(*(s.aliases for s in own))]
    )
    while own:
        chosen = next((s for s in own if any(_pair(c, s.alias, known) for c in late)), own[0])
        own.remove(chosen)
        known |= chosen.aliases
        mine = tuple(c for c in late if chosen.alias in c.aliases and c.aliases <= known)
        late = [c for c in late if c not in mine]
        asked.append(_TableRef("inner", chosen, mine))
    return rest, asked


def _pair(clause: Clause, table: str, known: Aliases) -> tuple[Expr, Expr] | None:
    """Split an equality into the value over known columns and that of the table; None for other clauses."""
    node = clause.value.node
    if not isinstance(node, Comparison) or node.sign != "=":
        return None
    for mine, other in ((node.left, node.right), (node.right, node.left)):
        if aliases(mine) == {table} and aliases(other) and aliases(other) <= known - {table}:
            return other, mine
    return None


def _lookup(asked: _TableRef, known: Aliases, at: At) -> LookupJoin:
    pairs, rest = [], []
    for clause in asked.on:
        pair = _pair(clause, asked.scan.alias, known)
        if pair is None:
            rest.append(clause)
            continue
        check_types(*pair, clause)
        pairs.append(pair)
    ends = [end for c in rest if (end := _end(c, asked.scan.alias, known))]
    low, high = (next((e for side, e in ends if side == wanted), None) for wanted in ("low", "high"))
    if not pairs and low is None and high is None:
        name = asked.scan.alias
        raise SqlError(
            f"no condition says that a column of {name} equals one of a stream, or bounds one; write"
            f" ON {min(known)}.key = {name}.key, or {min(known)}.x BETWEEN {name}.low AND {name}.high",
            *at(asked.scan),
        )
    types = tuple(t.exact(one.type, two.type) for one, two in pairs)
    return LookupJoin(
        asked.kind,
        asked.scan,
        tuple(one for one, _ in pairs),
        tuple(two for _, two in pairs),
        types,
        tuple(rest),
        asked.where,
        low,
        high,
    )


def _end(clause: Clause, table: str, known: Aliases) -> tuple[str, RangeEnd] | None:
    """The end of a range that a clause defines: `t.low <= o.x` is its low end; None for other clauses."""
    node = clause.value.node
    if not isinstance(node, Comparison) or node.sign not in ("<", "<=", ">", ">="):
        return None
    kind = t.common(node.left.type, node.right.type)
    for mine, other, sign in ((node.left, node.right, node.sign), (node.right, node.left, MIRROR[node.sign])):
        if aliases(mine) == {table} and aliases(other) and aliases(other) <= known - {table}:
            assert kind is not None
            return ("low" if sign in ("<", "<=") else "high"), RangeEnd(mine, other, kind)
    return None
