"""Moves each clause to where it is decided: as near to the input as gives the same rows.

Nested inner joins become one.

    clause on        | WHERE above a LEFT        | ON of a LEFT        | ON of a SEMI / ANTI
    the left only    | moves to the left         | stays: what matches | moves / stays
    the right only   | stays: sees NULLs         | moves               | moves / moves

FULL keeps everything in place. A condition above that no NULL-filled row passes turns LEFT into an inner
join, and FULL into LEFT.
"""

from dataclasses import replace

from joinlib.sql.graph import Clause, Joined, Scan, Tree, passing
from joinlib.sql.nulls import rejects_null

Clauses = list[Clause]


def push(tree: Tree, above: Clauses, needed: Clauses) -> Tree:
    """Return the tree filtered by the clauses `above`, each moved as far down as possible.

    `needed`: everything that rows must pass later; it shows which NULL-filled rows are never emitted.
    """
    if isinstance(tree, Scan):
        return passing(tree, above)
    above = [*tree.where, *above]
    needed = needed + above
    if tree.kind == "inner":
        return _inner(tree, above, needed)
    if tree.kind == "left" and _no_nulls(tree.children[1], needed):
        return _inner(tree, above, needed)
    if tree.kind == "full":
        return _full(tree, above, needed)
    return _one_sided(tree, above, needed)


def _no_nulls(tree: Tree, needed: Clauses) -> bool:
    return any(rejects_null(c.value, lambda name: name.partition(".")[0] in tree.aliases) for c in needed)


def _inner(tree: Joined, above: Clauses, needed: Clauses) -> Tree:
    """Make one n-way join; a join of a single child is just that child."""
    children, clauses = _melt(tree, above)
    pushed = [push(c, [x for x in clauses if _within(x, c)], needed + clauses) for c in children]
    rest = [x for x in clauses if not any(_within(x, c) for c in children)]
    if len(pushed) > 1:
        # The clauses pushed into a child may have made it an inner join.
        again = any(isinstance(c, Joined) and c.kind == "inner" for c in pushed)
        melted = Joined("inner", tuple(pushed), tuple(rest), (), tree.place)
        return _inner(melted, [], needed) if again else melted
    return passing(pushed[0], rest)


def _melt(tree: Tree, above: Clauses) -> tuple[list[Tree], Clauses]:
    children: list[Tree] = []
    clauses: Clauses = []
    assert isinstance(tree, Joined)
    for child in tree.children:
        if isinstance(child, Joined) and child.kind == "inner":
            below, more = _melt(child, list(child.where))
            children, clauses = children + below, clauses + more
        else:
            children.append(child)
    return children, clauses + list(tree.on) + above


def _within(clause: Clause, tree: Tree) -> bool:
    return bool(clause.aliases) and clause.aliases <= tree.aliases


def _one_sided(tree: Joined, above: Clauses, needed: Clauses) -> Tree:
    left, right = tree.children
    down = [c for c in above if _within(c, left)]
    where = [c for c in above if not _within(c, left)]
    on = list(tree.on)
    to_right = [c for c in on if _within(c, right)]
    to_left = [c for c in on if _within(c, left)] if tree.kind == "semi" else []
    stay = tuple(c for c in on if c not in to_right and c not in to_left)
    always = needed + (on if tree.kind == "semi" else [])
    children = (push(left, down + to_left, always), push(right, to_right, on))
    return replace(tree, children=children, on=stay, where=tuple(where))


def _full(tree: Joined, above: Clauses, needed: Clauses) -> Tree:
    """A FULL join with a WHERE that one side's NULLs fail is a LEFT join from that side."""
    left, right = tree.children
    for keep, fill in ((left, right), (right, left)):
        if _no_nulls(keep, needed):
            return push(Joined("left", (keep, fill), tree.on, (), tree.place), above, needed)
    children = (push(left, [], []), push(right, [], []))
    return Joined("full", children, tree.on, tuple(above), tree.place)
