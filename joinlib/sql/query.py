"""Analyses the text to a join graph. All decisions about how to run it are left to the planner."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.model.grouping import Grouping
from joinlib.model.stored import StoredColumns
from joinlib.sql.aggregate import aggregated
from joinlib.sql.bounds import intersect, time_bounds
from joinlib.sql.classes import key_classes
from joinlib.sql.depth import check_depth, with_room
from joinlib.sql.graph import (
    At,
    Clause,
    Joined,
    JoinNode,
    KeyClass,
    LookupJoin,
    Place,
    Query,
    Scan,
    Table,
    Tree,
    inputs,
    passing,
    preserved,
    scans,
)
from joinlib.sql.keys import Linked, NoKey, key_type, link, lossless
from joinlib.sql.null_safe import with_keys
from joinlib.sql.order import Order, of_the_text
from joinlib.sql.parse import parse, place
from joinlib.sql.push import Clauses, held_back, push
from joinlib.sql.select import Named, select_list
from joinlib.sql.sink import sunk
from joinlib.sql.stages import staged
from joinlib.sql.supported import check
from joinlib.sql.tables import take_out
from joinlib.sql.tree import Builder

Anew = Callable[[bool], Order]
_NOTHING = StoredColumns()


def analyse(sql: str, tables: Mapping[str, Table], changelog: bool = False) -> Query:
    """Return the join graph of one SELECT whose inputs share a key.

    Raises:
        SqlError: if the text is not such a query.
    """
    asked = with_room(lambda: _parsed(sql, parse(sql), tables, changelog, set(), _NOTHING))
    if isinstance(asked.tree, Scan) and not asked.lookups:
        raise SqlError(f"{asked.tree.alias} alone is not a join", 1, 1)
    return _whole(asked, link(asked.tree, []) if isinstance(asked.tree, Joined) else [])


def analyse_stages(
    sql: str,
    select: exp.Select,
    tables: Mapping[str, Table],
    changelog: bool = False,
    aliases: set[str] | None = None,
    anew: Anew = lambda _: of_the_text,
    stored: StoredColumns = _NOTHING,
) -> tuple[Query, ...]:
    """Return the join graphs of a SELECT's stages, in order; there is one where the inputs share a key.

    The last one has the select list and the lookups.

    Args:
        sql: The text in which places are told.
        select: A part of it that joins named inputs (`blocks`).
        tables: The inputs, and the parts before.
        changelog: Emit groups whenever they change.
        aliases: The names of inputs in other parts; those of this one are added.
        anew: Returns what decides in which order inner joins by several keys become stages, or by which paths they are
            done. It is asked for each form of the joins that is tried, and told whether paths may be taken where
            nobody asks for them; the last is taken.
        stored: What groups are to have besides the aggregates that are asked for, and the conditions that may be decided
            before the last join.

    Raises:
        SqlError: if the text is not a query that can be run.
    """
    taken = set() if aliases is None else aliases
    asked = with_room(lambda: _parsed(sql, select, tables, changelog, taken, stored))
    if isinstance(asked.tree, Scan):
        return (_whole(asked, []),)
    larger = _larger(asked.tree, asked.at)
    try:
        classes = link(larger, [])
    except NoKey:
        *first, last = _in_stages(asked, larger, anew)
        return (*map(_of_stage, first), _selecting(asked, _of_stage(last)))
    return (_whole(replace(asked, tree=larger), classes),)


@dataclass(frozen=True)
class _Parsed:
    """A parsed query, with each clause where it is decided."""

    tree: Tree
    lookups: tuple[LookupJoin, ...]
    columns: tuple[Named, ...]
    grouping: Grouping | None  # of the rows of `columns`
    held: Clauses  # decided after the last join
    at: At

    @property
    def reads(self) -> frozenset[str]:
        """The columns that lookups and the select list read."""
        probes = (e for looked in self.lookups for e in (*looked.probe, *_decided(looked)))
        values = (*(value for _, value in self.columns), *(clause.value for clause in self.held))
        return frozenset(c for e in (*probes, *values) for c in e.columns)


def _decided(looked: LookupJoin) -> tuple[Expr, ...]:
    return tuple(clause.value for clause in (*looked.predicate, *looked.where))


def _parsed(
    sql: str,
    select: exp.Select,
    tables: Mapping[str, Table],
    changelog: bool,
    taken: set[str],
    stored: StoredColumns,
) -> _Parsed:
    check_depth(sql, select)
    check(sql, select)
    tree, scope = Builder(sql, tables, taken).select(select)
    groups = aggregated(select, scope, stored.groups)
    columns = select_list(select, scope) if groups is None else groups.rows
    grouping = None if groups is None else replace(groups.grouping, changelog=changelog)

    def at(scan: Scan) -> Place:
        return place(sql, _named(select, scan))

    held: Clauses = []
    if stored.conditions is not None:
        tree, held = held_back(tree, stored)
    tree, lookups = take_out(push(tree, [], []), at)
    tree = with_keys(tree)
    if isinstance(tree, Scan):
        tree, held = passing(tree, held), []
    return _Parsed(tree, lookups, columns, grouping, held, at)


def _in_stages(asked: _Parsed, larger: Joined, anew: Anew) -> tuple[Joined, ...]:
    """Return the stages of joins of which all that can have sunk, if paths are taken then.

    These have more inputs, and no join above them stores what they find. A checkpoint's paths are of this form.
    """
    assert isinstance(asked.tree, Joined)
    moved = sunk(asked.tree, edges=True)
    stages = staged(moved, asked.at, anew(True), asked.reads)
    if moved == larger or any(stage.paths is not None for stage in stages):
        return stages
    return staged(larger, asked.at, anew(False), asked.reads)


def _larger(tree: Joined, at: At) -> Joined:
    """Let joins sink where fewer stages come of it, or as many whose inner joins have more inputs."""
    moved = sunk(tree)
    return tree if moved == tree else min(tree, moved, key=lambda t: _parts(t, at))


def _parts(tree: Joined, at: At) -> tuple[int, int]:
    """How many stages and inner joins a tree becomes, in the order of the text."""
    stages = (tree,) if _single(tree) else staged(tree, at)
    return len(stages), sum(map(_inner_joins, stages))


def _single(tree: Joined) -> bool:
    try:
        link(tree, [])
    except NoKey:
        return False
    return True


def _inner_joins(tree: Tree) -> int:
    return 0 if isinstance(tree, Scan) else (tree.kind == "inner") + sum(map(_inner_joins, tree.children))


def _met(tree: Joined) -> Joined:
    """Let all rows of a stage meet in one unit if no equality relates them: one of several stages routes by a key."""
    return tree if link(tree, []) else replace(tree, single=True)


def _whole(asked: _Parsed, classes: list[Linked]) -> Query:
    """Build the graph of the whole query, or of its last stage."""
    if isinstance(asked.tree, Scan):
        routed = _routed(asked.tree, asked.lookups[0]) if asked.lookups else ()
        return Query((asked.tree,), asked.tree, routed, asked.columns, asked.lookups, asked.grouping)
    return _selecting(asked, _query(asked.tree, classes))


def _selecting(asked: _Parsed, query: Query) -> Query:
    """Return the query with the select list of the text, and what comes after the joins."""
    tree = _decided_last(query.tree, asked.held)
    return replace(query, tree=tree, select=asked.columns, lookups=asked.lookups, grouping=asked.grouping)


def _decided_last(tree: JoinNode | Scan, held: Clauses) -> JoinNode | Scan:
    """Return the joins of which the last lets out only rows that pass further clauses: no key is made of these."""
    if isinstance(tree, Scan):
        return tree
    late = tuple(replace(clause, late=True) for clause in held)
    if tree.kind == "inner":
        return replace(tree, predicate=(*tree.predicate, *late))
    return replace(tree, where=(*tree.where, *late))


def _of_stage(tree: Joined) -> Query:
    """Build the graph of what one of several stages joins."""
    if tree.paths is not None:
        return _by_paths(tree)
    tree = _met(tree)
    return _query(tree, link(tree, []))


def _by_paths(tree: Joined) -> Query:
    """Build the graph of a join by paths: its classes relate some inputs each."""
    leaves, found = tuple(scans(tree)), key_classes(tree)
    holders = tuple(tuple(s.alias if s.alias in c.members else "" for c in found.classes) for s in leaves)
    said = [clause for clause in tree.on if not any(clause is one for one in found.rest)]
    node = JoinNode("inner", leaves, holders, *_told_apart(tree, said), tree.where)
    return Query(leaves, node, found.classes, (), paths=tree.paths)


def _query(tree: Joined, classes: list[Linked]) -> Query:
    """Build the graph of what one stage joins."""
    found = tuple(KeyClass(_in_order(c, tree), key_type(c)) for c in classes)
    return Query(tuple(scans(tree)), _node(tree, classes, found), found, (), waits=_waits(tree))


def _waits(tree: Tree) -> Place | None:
    if isinstance(tree, Scan):
        return None
    below = (found for c in tree.children if (found := _waits(c)))
    return tree.place if tree.kind in ("left", "full", "anti") else next(below, None)


def _named(select: exp.Select, scan: Scan) -> exp.Expr:
    """Find where the text names an input; a subquery's input may have been renamed."""
    tables = list(select.find_all(exp.Table))
    by_alias = (x for x in tables if (x.alias or x.name).lower() == scan.alias.lower())
    return next(by_alias, None) or next(x for x in tables if x.name.lower() == scan.table.name.lower())


def _routed(scan: Scan, first: LookupJoin) -> tuple[KeyClass, ...]:
    """Route a single stream by the key of its first lookup, so that each row
    of the table is needed by one unit only.
    """
    return tuple(KeyClass({scan.alias: e}, kind) for e, kind in zip(first.probe, first.types, strict=True))


def _in_order(linked: Linked, tree: Tree) -> dict[str, Expr]:
    return {s.alias: linked.members[s.alias] for s in scans(tree) if s.alias in linked.members}


def _node(tree: Joined, classes: list[Linked], types: tuple[KeyClass, ...]) -> JoinNode:
    """Build a node with its clauses classified as keys, bounds and the rest."""
    redundant = [e for c, k in zip(classes, types, strict=True) for e in c.edges if lossless(e, k.type)]
    times, predicate = _told_apart(tree, redundant)
    children: list[JoinNode | Scan] = []
    for number, child in enumerate(tree.children):
        below = [c.parts[number] for c in classes]
        children.append(child if isinstance(child, Scan) else _node(child, below, types))
    holders = tuple(
        tuple(_holder(child, c.parts[i]) for c in classes if tree.right == "keyed")
        for i, child in enumerate(tree.children)
    )
    return JoinNode(tree.kind, tuple(children), holders, times, predicate, tree.where, tree.right, tree.apart)


def _told_apart(tree: Joined, said: Collection[Clause]) -> tuple[tuple[Bound, ...], tuple[Clause, ...]]:
    """Return the time bounds of a join, and the other clauses without those that its key classes have said."""
    order = _event_times(tree)
    rest: list[Clause] = []
    bounds: list[Bound] = []
    for clause in tree.on:
        found, exact = ((), False) if _within_a_child(clause, tree) else time_bounds(clause, order)
        bounds += found
        if not exact and not any(clause is e for e in said):
            rest.append(clause)
    return intersect(bounds), tuple(rest)


def _within_a_child(clause: Clause, tree: Joined) -> bool:
    """Whether a clause reads one child only.

    In the ON of an outer join it decides what matches, and is no statement about the child's own rows.
    """
    return any(clause.aliases <= child.aliases for child in tree.children)


def _holder(child: Tree, part: Linked) -> str:
    """An input below the child whose member of the class is the key of every row of the child."""
    return next(
        a for a, member in part.members.items() if member.sql in part.carried and a in preserved(child)
    )


def _event_times(tree: Tree) -> dict[str, int]:
    """Number, in the text's order, the event-time columns of the inputs that are never filled with NULL."""
    assert isinstance(tree, Joined)
    alive = frozenset().union(*(preserved(c) for c in tree.children))
    named = [f"{s.alias}.{s.table.time}" for s in inputs(tree) if s.table.time and s.alias in alive]
    return {name: i for i, name in enumerate(named)}
