"""Finds the key classes: the equalities that have one expression of every
input, and so can route rows to units.

    a.k = b.k AND a.k = c.k   one class {a.k, b.k, c.k}: one n-way join, no exchange
    a.k = b.k AND b.j = c.j   two classes, neither holds for all three: one stage is not enough (see `stages`)

Law: rows of an n-tuple that matches agree in every class, even where an outer join fills in NULLs: above it
only the kept side's member carries the key. Cost: quadratic in the number of equalities.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from joinlib.errors import SqlError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.compare import Comparison
from joinlib.expr.nodes import constant
from joinlib.sql.graph import Clause, Joined, Scan, Tree, aliases, inputs, preserved

ONE = constant(pa.scalar(1, pa.int64()), "1")


class NoKey(SqlError):
    """Raised when no key class holds for every input, so that one stage cannot join them."""


@dataclass(frozen=True)
class Linked:
    """A key class below some node: how it routes each input's rows, and which
    expressions have its value in every row.
    """

    members: dict[str, Expr]
    carried: frozenset[str]  # texts of expressions
    parts: tuple["Linked", ...] = ()  # the same class in each child
    edges: tuple[Clause, ...] = ()  # clauses that the class makes redundant


@dataclass(frozen=True)
class Edge:
    """An equality between two children of a node."""

    clause: Clause
    ends: tuple[tuple[int, Linked], tuple[int, Linked]]


def link(tree: Tree, unusable: list[str]) -> list[Linked]:
    """Return the classes that hold for every input of the tree.

    The list is empty for an inner join of two inputs that some other predicate relates. `unusable` collects
    why equalities could not be used.

    Raises:
        NoKey: if there is no class and the join needs one.
    """
    assert isinstance(tree, Joined)
    if tree.single:
        return [_constant(tree)]
    if tree.right != "keyed":
        return _unkeyed(tree, unusable)
    if tree.apart is not None and isinstance(tree.children[0], Joined):
        raise _no_class(tree, [], unusable)  # a join's rows are already placed by its own key
    below = [link(c, unusable) if _keyed(c) else [] for c in tree.children]
    edges = [e for c in tree.on if (e := _edge(c, tree, below, unusable))]
    found = list(_groups(edges, tree) if tree.kind == "inner" else _pairs(edges, tree))
    if not found and not _related(tree):
        raise _no_class(tree, edges, unusable)
    return found


def key_count(tree: Joined) -> int:
    """Return the number of key classes that hold for all inputs of a tree."""
    if len(tree.children) == 1:
        return 0
    try:
        return len(link(tree, []))
    except NoKey:
        return 0


def _constant(tree: Joined) -> Linked:
    """Return a class whose members are one constant, so that all rows meet."""
    parts = [
        Linked({c.alias: ONE}, frozenset((ONE.sql,))) if isinstance(c, Scan) else _constant(c)
        for c in tree.children
    ]
    members = {alias: e for part in parts for alias, e in part.members.items()}
    return Linked(members, frozenset((ONE.sql,)), tuple(parts))


def _keyed(tree: Tree) -> bool:
    """Whether this is a join whose rows are placed by their key."""
    if isinstance(tree, Scan) or tree.apart is not None:
        return False
    return tree.right == "keyed" or _keyed(tree.children[0])


def _unkeyed(tree: Joined, unusable: list[str]) -> list[Linked]:
    """The classes of the first input. The second has none: its rows are sent to where those
    of the first are.
    """
    left, right = tree.children
    if isinstance(left, Scan) or isinstance(right, Joined):
        raise _no_class(tree, [], unusable)
    return [Linked(c.members, c.carried, (c, Linked({}, frozenset()))) for c in link(left, unusable)]


def _related(tree: Joined) -> bool:
    """Whether this is an inner join of two inputs with a condition that reads both."""
    two = tree.kind == "inner" and len(tree.children) == 2 and all(isinstance(c, Scan) for c in tree.children)
    return two and any(clause.aliases == tree.aliases for clause in tree.on)


def _edge(clause: Clause, tree: Joined, below: list[list[Linked]], unusable: list[str]) -> Edge | None:
    node = clause.value.node
    if not isinstance(node, Comparison) or node.sign != "=":
        return None
    ends = [_end(side, tree, below, unusable) for side in (node.left, node.right)]
    if ends[0] is None or ends[1] is None or ends[0][0] == ends[1][0]:
        return None
    check_types(node.left, node.right, clause)
    return Edge(clause, (ends[0], ends[1]))


def _end(
    side: Expr, tree: Joined, below: list[list[Linked]], unusable: list[str]
) -> tuple[int, Linked] | None:
    """The child that an expression reads, and its class there; None if it has none."""
    speaks = aliases(side)
    for number, child in enumerate(tree.children):
        if not speaks or not speaks <= child.aliases:
            continue
        if isinstance(child, Scan):
            return number, Linked({child.alias: side}, frozenset((side.sql,)))
        hit = next((c for c in below[number] if side.sql in c.carried), None)
        if hit is None:
            unusable.append(_unusable(side, child, below[number]))
        return None if hit is None else (number, hit)
    return None


def _unusable(side: Expr, child: Tree, classes: list[Linked]) -> str:
    known = [e for c in classes for e in sorted(c.carried)]
    instead = f"join on {' or '.join(known)} instead" if known else "join it in another order"
    if not aliases(side) <= preserved(child):
        return f"{side.excerpt} is NULL where the outer join below found no partner: {instead}"
    return f"{side.excerpt} is not the key of the joins before it: {instead}"


def equalities(tree: Joined) -> list[Edge]:
    """Return the equalities between inputs of an inner join, none of which is a join itself."""
    below: list[list[Linked]] = [[] for _ in tree.children]
    return [edge for clause in tree.on if (edge := _edge(clause, tree, below, []))]


def _groups(edges: list[Edge], tree: Joined) -> Iterator[Linked]:
    """The classes of an inner join that have a member in every child."""
    return (linked for linked in grouped(edges) if len(linked.parts) == len(tree.children))


def grouped(edges: list[Edge]) -> Iterator[Linked]:
    """Yield the classes of an inner join: everything that is equal, directly or transitively, is one class.

    Its parts are those of the children that have a member, in their order.
    """
    groups: list[list[Edge]] = []
    for edge in edges:
        near = [g for g in groups if any(_names(edge) & _names(other) for other in g)]
        groups = [g for g in groups if g not in near] + [[*(e for g in near for e in g), edge]]
    for group in groups:
        sides = [end for edge in group for end in edge.ends]
        chosen = dict(reversed(sides))  # for each child, the end that was written first
        carried = frozenset(text for _, linked in sides for text in linked.carried)
        redundant = [e.clause for e in group if all(x.members == chosen[i].members for i, x in e.ends)]
        yield _linked([chosen[i] for i in sorted(chosen)], carried, redundant)


def _names(edge: Edge) -> set[tuple[int, str]]:
    return {(number, text) for number, linked in edge.ends for text in linked.carried}


def _pairs(edges: list[Edge], tree: Joined) -> Iterator[Linked]:
    """The classes of an outer, semi or anti join: the left's class continues,
    so each class of a side is used once.
    """
    used: set[tuple[int, str]] = set()
    for edge in edges:
        if _names(edge) & used:
            continue
        used |= _names(edge)
        left, right = (linked for _, linked in sorted(edge.ends, key=lambda end: end[0]))
        yield _linked([left, right], frozenset() if tree.kind == "full" else left.carried, [edge.clause])


def _linked(parts: list[Linked], carried: frozenset[str], redundant: list[Clause]) -> Linked:
    members = {alias: e for part in parts for alias, e in part.members.items()}
    return Linked(members, carried, tuple(parts), tuple(redundant))


def check_types(left: Expr, right: Expr, clause: Clause) -> None:
    """Check that two keys can be compared in one type without parsing
    strings or turning dates into midnights.

    Raises:
        SqlError: if they cannot.
    """
    for side in (left, right):
        if t.is_nested(side.type) or side.type in (t.INTERVAL, t.NULL):
            kind = t.name(side.type)
            fix = "join on its fields" if t.is_struct(side.type) else "join on another column"
            raise SqlError(f"{side.sql} is {kind}, which cannot be a key; {fix}", *clause.place)
    if t.exact(left.type, right.type) is not None:
        return
    kinds = f"{left.sql} is {t.name(left.type)} and {right.sql} is {t.name(right.type)}"
    other, target = (right, left.type) if t.is_string(right.type) else (left, right.type)
    if t.is_time(left.type) and t.is_time(right.type):
        other, target = (left, right.type) if left.type == t.DATE else (right, left.type)
    raise SqlError(
        f"keys differ in type: {kinds}; write CAST({other.sql} AS {t.name(target)})", *clause.place
    )


def key_type(linked: Linked) -> pa.DataType:
    """The common type that all members of the class are cast to."""
    kind = t.NULL
    for member in linked.members.values():
        found = t.exact(kind, member.type)
        assert found is not None
        kind = found
    return kind


def lossless(clause: Clause, kind: pa.DataType) -> bool:
    """Whether equality in the key's type means the same as the clause.

    It does not where, for instance, two BIGINTs are compared as DOUBLE because a third member is a DOUBLE.
    """
    node = clause.value.node
    assert isinstance(node, Comparison)
    met = t.exact(node.left.type, node.right.type)
    if kind == t.DOUBLE:
        return met is not None and t.is_float(met)
    if t.is_decimal(kind):
        sides = [t.as_decimal(e.type) for e in (node.left, node.right)]
        whole = kind.precision - kind.scale
        return all(s.scale <= kind.scale and s.precision - s.scale <= whole for s in sides)
    return True


def _no_class(tree: Joined, edges: list[Edge], unusable: list[str]) -> NoKey:
    names = sorted(named(tree))
    if unusable:
        return NoKey(f"{unusable[0]}. One stage joins by one key", *tree.place)
    if edges:
        written = "; ".join(e.clause.value.excerpt for e in edges)
        return NoKey(
            f"the joins of {', '.join(names)} have no key in common ({written}): one stage joins by one key,"
            " several keys take a stage each",
            *tree.place,
        )
    return NoKey(_unrelated(tree), *tree.place)


def named(tree: Tree) -> list[str]:
    """The inputs below the tree by their names in the text."""
    return [s.alias for s in inputs(tree)]


def _unrelated(tree: Joined) -> str:
    left, right = (min(named(c)) for c in tree.children[:2])
    nothing = f"no condition says that a column of {left} equals one of {right}"
    if len(named(tree)) > 2:
        return (
            f"{nothing}. Without an equality, at most two inputs are joined; write ON {left}.key ="
            f" {right}.key"
        )
    if tree.kind != "inner":
        return (
            f"{nothing}. Without an equality, the partners of a row may be in any unit, so no unit can tell"
            f" that it has none: only INNER JOIN works without one; write ON {left}.key = {right}.key"
        )
    return (
        f"no condition relates {left} to {right}, so every row would match every other; write a condition on"
        f" both, such as ON {left}.key = {right}.key or {left}.x BETWEEN {right}.low AND {right}.high"
    )
