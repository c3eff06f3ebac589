"""Which time bounds hold of the rows that matter, and how far apart may two event times of theirs be?

    (a JOIN b) LEFT JOIN c ON a.t ~ c.t AND b.t ~ c.t

a and b may be any time apart: a pair without a c comes out all the same. Were it an inner JOIN c, a and b that have no c
between them would not matter. So a bound counts below its join only on sides whose rows vanish when they match nothing.
"""

from collections.abc import Iterable

from joinlib.expr.bound import Bound
from joinlib.join.config import Join, Leaf
from joinlib.route.config import InputPlan
from joinlib.state.manifest import ALWAYS

Reach = dict[tuple[str, str], int]  # (x, y) -> the most that y may exceed x, µs
Bounds = tuple[Bound, ...]


class Holding:
    """The bounds that hold of a subtree's output."""

    def __init__(self, inputs: tuple[InputPlan, ...]) -> None:
        self.inputs = inputs

    def of(self, tree: Join | Leaf, outside: Bounds) -> Bounds:
        """Those that hold of its rows for which `outside` holds: a column that is bounded there is not NULL."""
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
        """Those that hold of every row of child `at` that matters, given those that hold of the join's output."""
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
    """The columns that bounds speak of."""
    return {c for b in bounds for c in (b.left, b.right)}


def all_bounds(tree: Join) -> Bounds:
    """Those of every join of the tree."""
    return (*tree.bounds, *(b for c in tree.inputs if isinstance(c, Join) for b in all_bounds(c)))


def closure(bounds: Iterable[Bound]) -> Reach:
    """For every ordered pair that is bounded, also over others (Floyd-Warshall). O(columns^3)."""
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
