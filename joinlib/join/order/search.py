"""Finds the cheapest sequence of probes (dpPick, algorithm 3).

The cost of the probes after a step depends on which inputs are bound before them, not on their order. So the
best remainder is found once for each set of bound inputs: O(2^n n²) steps instead of n! sequences.
"""

from collections.abc import Collection
from functools import cache

from joinlib.join.order.cost import CostModel, Pair

Sequence = tuple[Pair, ...]


def exact(model: CostModel, edges: Collection[Pair], start: int) -> Sequence:
    """Return the cheapest sequence for one input (algorithm 3); of equal ones the lexicographically first."""

    @cache
    def best(bound: frozenset[int]) -> tuple[float, Sequence]:
        found = []
        for edge in possible(edges, bound):
            rest, behind = best(bound | {edge[1]})
            found.append((model.step(edge, rest), (edge, *behind)))
        return min(found, default=(0.0, ()))

    return best(frozenset([start]))[1]


def possible(edges: Collection[Pair], bound: Collection[int]) -> list[Pair]:
    """Return the probes that can come next."""
    return [edge for edge in edges if edge[0] in bound and edge[1] not in bound]
