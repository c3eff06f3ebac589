"""Finds the cheapest path of each input (dpPick, algorithm 3, over any join graph, with exchanges).

What the probes after a step cost depends on the inputs that are bound before them and on the key by which the
tuples lie, not on their order and not on where the path began. So the best remainder is found once for each
such pair, O(2^inputs · keys · arrangements) steps for all inputs together, instead of all paths.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import count, islice
from typing import NamedTuple

from joinlib.path.cost import PathCosts
from joinlib.path.graph import Arrangement, JoinGraph, Key, Path, Probe, next_probes

_NOWHERE = float("inf")
Rest = tuple[float, tuple[Probe, ...]]
Bound = frozenset[int]
Search = Callable[[int], Path | None]


def search(
    graph: JoinGraph,
    arrangements: Sequence[Arrangement],
    costs: PathCosts,
    legs: int | None = None,
    homes: Sequence[Key] = (),
) -> Search:
    """Return what finds the cheapest path of an input; of equal ones that of the lowest probes, None if there is none.

    legs: the most that a path may have; None is any number. homes: the key by which the rows of each input come
    in: a path that begins with another one has an exchange, and a leg, more. Without homes, rows come in by any key.
    """
    best = _rests(graph, arrangements, costs)

    def of(start: int) -> Path | None:
        cost, probes = best(frozenset([start]), *_begin(graph, start, legs, homes))
        return None if cost == _NOWHERE else Path(start, probes)

    return of


def cheapest_paths(
    graph: JoinGraph, arrangements: Sequence[Arrangement], costs: PathCosts, legs: int | None = None
) -> tuple[Path, ...] | None:
    """Return the cheapest path of each input; None if the arrangements do not let each of them reach all others."""
    found = map(search(graph, arrangements, costs, legs), range(graph.inputs))
    paths = tuple(path for path in found if path is not None)
    return paths if len(paths) == graph.inputs else None


def cheapest_few(
    graph: JoinGraph,
    arrangements: Sequence[Arrangement],
    costs: PathCosts,
    start: int,
    most: int,
    legs: int | None = None,
    homes: Sequence[Key] = (),
) -> tuple[Path, ...]:
    """Return the `most` cheapest paths of an input, the cheapest first; for the other arguments see `search`."""
    best = _rests(graph, arrangements, costs)
    return tuple(
        islice(_in_order(graph, arrangements, costs, start, _begin(graph, start, legs, homes), best), most)
    )


def _begin(graph: JoinGraph, start: int, legs: int | None, homes: Sequence[Key]) -> tuple[Key, int]:
    """Return the key by which the rows of an input lie, and how many exchanges their path may have."""
    most = graph.inputs if legs is None else legs
    return (homes[start], most - 1) if homes else ((), most)


def _rests(
    graph: JoinGraph, arrangements: Sequence[Arrangement], costs: PathCosts
) -> Callable[[Bound, Key, int], Rest]:
    """Return what finds the cheapest remainder of a path: its cost for a tuple, and its probes."""

    @cache
    def best(bound: Bound, at: Key, left: int) -> Rest:
        if len(bound) == graph.inputs:
            return 0.0, ()
        found: list[Rest] = []
        for probe, longer, key, moved in _steps(graph, arrangements, bound, at, left):
            rest, behind = best(longer, key, left - moved)
            if rest < _NOWHERE:
                # Without homes all paths begin with one exchange more, that of the row itself.
                found.append((costs.step(probe, rest, moved), (probe, *behind)))
        return min(found, default=(_NOWHERE, ()))

    return best


def _steps(
    graph: JoinGraph, arrangements: Sequence[Arrangement], bound: Bound, at: Key, left: int
) -> Iterator[tuple[Probe, Bound, Key, bool]]:
    """Yield each probe that can come next, with the inputs and the key after it, and whether it needs an exchange."""
    for probe in next_probes(graph, arrangements, bound):
        aim = arrangements[probe.arrangement]
        moved = aim.key != at
        if left or not moved:
            yield probe, bound | {aim.input}, aim.key, moved


class _Begun(NamedTuple):
    """The beginning of a path, by the least that the whole costs."""

    whole: float
    tie: int
    spent: float
    tuples: float  # that one row has become
    bound: Bound
    at: Key
    left: int  # exchanges
    probes: tuple[Probe, ...]


def _in_order(
    graph: JoinGraph,
    arrangements: Sequence[Arrangement],
    costs: PathCosts,
    start: int,
    begin: tuple[Key, int],
    best: Callable[[Bound, Key, int], Rest],
) -> Iterator[Path]:
    """Yield paths by their cost: a beginning is as cheap as its best remainder lets it be, which is known."""
    ties, (at, left) = count(), begin
    heap = [_Begun(0.0, next(ties), 0.0, 1.0, frozenset([start]), at, left, ())]
    while heap:
        so_far = heappop(heap)
        if len(so_far.bound) == graph.inputs:
            yield Path(start, so_far.probes)
            continue
        for probe, longer, key, moved in _steps(graph, arrangements, so_far.bound, so_far.at, so_far.left):
            rest, _ = best(longer, key, so_far.left - moved)
            if rest == _NOWHERE:
                continue
            spent = so_far.spent + so_far.tuples * costs.step(probe, 0.0, moved)
            tuples = so_far.tuples * costs.grown(probe)
            probes = (*so_far.probes, probe)
            whole = spent + tuples * rest
            heappush(heap, _Begun(whole, next(ties), spent, tuples, longer, key, so_far.left - moved, probes))
