"""Moves each clause to where it is decided: as near to the input as gives the same rows.

Nested inner joins become one.

    clause on        | WHERE above a LEFT        | ON of a LEFT        | ON of a SEMI / ANTI
    the left only    | moves to the left         | stays: what matches | moves / stays
    the right only   | stays: sees NULLs         | moves               | moves / moves

FULL keeps everything in place. A condition above that no NULL-filled row passes turns LEFT into an inner
join, and FULL into LEFT.

Of a query that goes on from the rows of another one, conditions by which those were not chosen stay above all joins.
"""

from dataclasses import replace

from joinlib.expr.compare import Comparison
from joinlib.expr.total import total
from joinlib.model.stored import StoredColumns
from joinlib.sql.graph import Clause, Joined, Scan, Tree, passing, scans
from joinlib.sql.nulls import rejects_null

Clauses = list[Clause]
_EQUAL = ("=", "<=>")


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


def held_back(tree: Tree, stored: StoredColumns) -> tuple[Tree, Clauses]:
    """Return the tree without the clauses above its joins that can be decided after all of them, and those.

    They are of streams, say nothing of times, and rows are neither stored nor found by them; nor do rows for which they
    fail become dead letters, as only what is decided before the joins can send.
    """
    if isinstance(tree, Scan):
        return tree, []
    streams = [scan for scan in scans(tree) if scan.table.stream]
    aliases = frozenset(scan.alias for scan in streams)
    times = frozenset(f"{scan.alias}.{scan.table.time}" for scan in streams if scan.table.time is not None)
    conditions = stored.conditions or frozenset()

    kept = frozenset(scan.alias for scan in streams if scan.table.keeps_failed)

    def late(clause: Clause) -> bool:
        return clause.aliases <= aliases and not (
            (len(clause.aliases) == 1 and clause.aliases <= kept and not total(clause.value.node))
            or clause.value.sql in conditions
            or (len(clause.aliases) > 1 and clause.value.sql in stored.relations)
            or _by_keys(clause, stored.keys)
            or (_compares(clause) and not times.isdisjoint(clause.value.columns))
        )

    def out(tree: Tree) -> tuple[Tree, Clauses]:
        if isinstance(tree, Scan):
            return tree, []
        inner = tree.kind == "inner"
        below = [out(child) if inner else (child, []) for child in tree.children]
        own = [*(tree.on if inner else ()), *tree.where]
        found = [clause for clause in own if late(clause)]
        on = tuple(c for c in tree.on if not inner or c not in found)
        where = tuple(c for c in tree.where if c not in found)
        rest = replace(tree, children=tuple(child for child, _ in below), on=on, where=where)
        return rest, [*(clause for _, some in below for clause in some), *found]

    return out(tree)


def _by_keys(clause: Clause, keys: frozenset[frozenset[str]]) -> bool:
    """Return whether a clause is the equality of two values that these say are equal; they may be cast."""
    node = clause.value.node
    if not isinstance(node, Comparison) or node.sign not in _EQUAL:
        return False
    sides = node.left.sql, node.right.sql
    return any(all(any(_is(side, key) for key in equal) for side in sides) for equal in keys)


def _is(value: str, key: str) -> bool:
    """Return whether a key is this value, which may be cast, and have a constant for NULL (`joinlib.sql.null_safe`)."""
    key = key.removeprefix("coalesce(")
    return key == value or key.startswith((f"CAST({value} AS ", f"{value}, "))


def _compares(clause: Clause) -> bool:
    """Return whether a clause compares values of several inputs."""
    return len(clause.aliases) > 1 and isinstance(clause.value.node, Comparison)


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
