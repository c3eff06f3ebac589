"""The text as a join graph. Everything about running it is left to the planner."""

from collections.abc import Mapping

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.expr import Expr
from joinlib.sql.aggregate import aggregated, in_mode
from joinlib.sql.bounds import intersect, time_bound
from joinlib.sql.graph import Clause, Joined, KeyClass, Lookup, Node, Query, Scan, Table, Tree, kept, scans
from joinlib.sql.keys import Linked, key_type, link, lossless
from joinlib.sql.parse import parse, place
from joinlib.sql.push import push
from joinlib.sql.select import select_list
from joinlib.sql.tables import take_out
from joinlib.sql.tree import Builder


def analyse(sql: str, tables: Mapping[str, Table], changelog: bool = False) -> Query:
    """The join graph of one SELECT; SqlError where it cannot be one. `changelog`: groups come out whenever they change."""
    select = parse(sql)
    tree, scope = Builder(sql, tables).select(select)
    groups = aggregated(select, scope)
    columns = select_list(select, scope) if groups is None else groups.rows
    grouping = None if groups is None else in_mode(groups.grouping, changelog, sql, select)
    if changelog and grouping is None:
        raise SqlError(
            "output.mode: changelog is of groups, and there is no GROUP BY; write mode: append",
            *place(sql, select),
        )
    tree, lookups = take_out(push(tree, [], []), lambda scan: place(sql, _named(select, scan)))
    if isinstance(tree, Scan):
        if not lookups:
            raise SqlError(
                f"{tree.alias} alone is no join: a query joins two or more inputs", *place(sql, select)
            )
        return Query((tree,), tree, _routed(tree, lookups[0]), columns, lookups, grouping)
    classes = link(tree, [])
    found = tuple(KeyClass(_in_order(c, tree), key_type(c)) for c in classes)
    return Query(tuple(scans(tree)), _node(tree, classes, found), found, columns, lookups, grouping)


def _named(select: exp.Select, scan: Scan) -> exp.Expr:
    """Where the text names an input; a subquery's input may have been renamed."""
    tables = list(select.find_all(exp.Table))
    by_alias = (x for x in tables if (x.alias or x.name).lower() == scan.alias.lower())
    return next(by_alias, None) or next(x for x in tables if x.name.lower() == scan.table.name.lower())


def _routed(scan: Scan, first: Lookup) -> tuple[KeyClass, ...]:
    """A stream alone goes to units by the key of its first lookup: a row of a table is wanted by one unit only."""
    return tuple(KeyClass({scan.alias: e}, kind) for e, kind in zip(first.probe, first.types, strict=True))


def _in_order(linked: Linked, tree: Tree) -> dict[str, Expr]:
    return {s.alias: linked.members[s.alias] for s in scans(tree)}


def _node(tree: Joined, classes: list[Linked], types: tuple[KeyClass, ...]) -> Node:
    """The node with its clauses told apart: keys, bounds, the rest."""
    redundant = [e for c, k in zip(classes, types, strict=True) for e in c.edges if lossless(e, k.type)]
    order = _event_times(tree)
    rest: list[Clause] = []
    bounds = []
    for clause in tree.on:
        bound = None if _within_a_child(clause, tree) else time_bound(clause, order)
        if bound is not None:
            bounds.append(bound)
        if bound is None and not any(clause is e for e in redundant):
            rest.append(clause)
    children: list[Node | Scan] = []
    for number, child in enumerate(tree.children):
        below = [c.parts[number] for c in classes]
        children.append(child if isinstance(child, Scan) else _node(child, below, types))
    holders = tuple(
        tuple(_holder(child, c.parts[i]) for c in classes) for i, child in enumerate(tree.children)
    )
    return Node(tree.kind, tuple(children), holders, intersect(bounds), tuple(rest), tree.where)


def _within_a_child(clause: Clause, tree: Joined) -> bool:
    """Such a clause in the ON of an outer join decides what matches, and says nothing of the child's own rows."""
    return any(clause.aliases <= child.aliases for child in tree.children)


def _holder(child: Tree, part: Linked) -> str:
    """An input below the child whose member is the key of every row of the child."""
    return next(a for a, member in part.members.items() if member.sql in part.carried and a in kept(child))


def _event_times(tree: Tree) -> dict[str, int]:
    """Event-time columns that are never filled with NULL among the node's inputs, numbered in the text's order."""
    assert isinstance(tree, Joined)
    alive = frozenset().union(*(kept(c) for c in tree.children))
    named = [f"{s.alias}.{s.table.time}" for s in scans(tree) if s.table.time and s.alias in alive]
    return {name: i for i, name in enumerate(named)}
