"""The cheapest sequence of probes (dpPick, algorithms 3 and 4).

The cost of the probes behind a step depends on which inputs are bound before them, not on the way there. So the best rest is
found once for each set of bound inputs: O(2^n n²) steps instead of n! sequences.
"""

from collections.abc import Collection, Iterator
from functools import cache

from joinlib.join.order.cost import Model, Pair

Sequence = tuple[Pair, ...]


def sequences(edges: Collection[Pair], start: int) -> Iterator[Sequence]:
    """Algorithm 4: every sequence that begins at `start` and reaches all inputs. For tests and small n."""
    inputs = {i for edge in edges for i in edge} | {start}

    def walk(bound: frozenset[int], done: Sequence) -> Iterator[Sequence]:
        if len(bound) == len(inputs):
            yield done
        for edge in possible(edges, bound):
            yield from walk(bound | {edge[1]}, (*done, edge))

    return walk(frozenset([start]), ())


def exact(model: Model, edges: Collection[Pair], start: int) -> Sequence:
    """Algorithm 3 for one input: of all sequences the cheapest; of equal ones that with the lowest numbers first."""

    @cache
    def best(bound: frozenset[int]) -> tuple[float, Sequence]:
        found = []
        for edge in possible(edges, bound):
            rest, behind = best(bound | {edge[1]})
            found.append((model.step(edge, rest), (edge, *behind)))
        return min(found, default=(0.0, ()))

    return best(frozenset([start]))[1]


def possible(edges: Collection[Pair], bound: Collection[int]) -> list[Pair]:
    """The probes that can come next."""
    return [edge for edge in edges if edge[0] in bound and edge[1] not in bound]
