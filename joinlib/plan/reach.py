"""Computes which time bounds hold for the rows that matter, and how far
apart two of their event times may be.

    (a JOIN b) LEFT JOIN c ON a.t ~ c.t AND b.t ~ c.t

a and b may be any time apart: a pair without a c is emitted all the same. If c were joined by an inner JOIN,
pairs without a c between them would not matter. So a bound holds below its join only on sides whose rows
vanish when they match nothing.
"""

from collections.abc import Iterable

from joinlib.expr.bound import Bound
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Join, Leaf
from joinlib.model.time import ALWAYS

Reach = dict[tuple[str, str], int]  # (x, y) -> the most that y may exceed x, in µs
Bounds = tuple[Bound, ...]


class Holding:
    """Finds the bounds that hold for the output of a subtree."""

    def __init__(self, inputs: tuple[InputPlan, ...]) -> None:
        self.inputs = inputs

    def of(self, tree: Join | Leaf, outside: Bounds) -> Bounds:
        """The bounds that hold for those output rows of `tree` that satisfy `outside`.

        A column that `outside` bounds is not NULL in them.
        """
        if isinstance(tree, Leaf):
            return ()
        read = columns(outside)
        there = [
            tree.kind == "inner" or (at == 0 and tree.kind != "full") or bool(read & self._names(child))
            for at, child in enumerate(tree.inputs)
        ]
        own = tree.bounds if all(there) else ()
        present = (child for child, is_there in zip(tree.inputs, there, strict=True) if is_there)
        return (*own, *(b for child in present for b in self.of(child, (*outside, *own))))

    def inside(self, join: Join, at: int, outside: Bounds) -> Bounds:
        """The bounds that hold for every row of child `at` that matters,
        given `outside` for the join's output.
        """
        if join.kind not in ("inner", "semi") and (join.kind == "full" or at == 0):
            return outside
        known = (*outside, *join.bounds)
        others = (c for i, c in enumerate(join.inputs) if i != at)
        return (*known, *(b for other in others for b in self.of(other, known)))

    def _names(self, tree: Join | Leaf) -> set[str]:
        if isinstance(tree, Leaf):
            return {c.name for c in self.inputs[tree.input].columns}
        return set().union(*(self._names(c) for c in tree.inputs))


def columns(bounds: Iterable[Bound]) -> set[str]:
    """The columns that bounds compare."""
    return {c for b in bounds for c in (b.left, b.right)}


def all_bounds(tree: Join) -> Bounds:
    """The bounds of every join in the tree."""
    return (*tree.bounds, *(b for c in tree.inputs if isinstance(c, Join) for b in all_bounds(c)))


def closure(bounds: Iterable[Bound]) -> Reach:
    """Close the bounds over all pairs of columns, by shortest paths (Floyd-Warshall). O(columns^3)."""
    hi: Reach = {}
    for b in bounds:
        for way in (b, b.turned):
            if way.high_us is not None:
                pair = way.left, way.right
                hi[pair] = min(hi.get(pair, ALWAYS), way.high_us)
    names = sorted({n for pair in hi for n in pair})
    for k in names:
        for i in names:
            for j in names:
                if (i, k) in hi and (k, j) in hi and i != j:
                    hi[i, j] = min(hi.get((i, j), ALWAYS), hi[i, k] + hi[k, j])
    return hi
