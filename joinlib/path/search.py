"""Finds the cheapest path of each input (dpPick, algorithm 3, over any join graph, with exchanges).

What the probes after a step cost depends on the inputs that are bound before them and on the key by which the
tuples lie, not on their order. So the best remainder is found once for each such pair, O(2^inputs · keys ·
arrangements) steps for an input, instead of all paths.

There may be too many sets of inputs that hang together: then the cheapest probe is taken at each step.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from heapq import heappop, heappush
from itertools import count, islice
from typing import NamedTuple

from joinlib.path.cost import PathCosts
from joinlib.path.graph import Arrangement, JoinGraph, Key, Path, Probe, askers_of

MOST_SETS = 1 << 14  # of bound inputs, for all starts together
MOST_INPUTS = 11  # of more, sets are not even counted
_NOWHERE = float("inf")
Rest = tuple[float, tuple[Probe, ...]]
Bound = frozenset[int]
Search = Callable[[int], Path | None]
Figure = Callable[[Probe, bool], float]  # of a probe, and whether tuples move for it


class _Move(NamedTuple):
    """A probe that can come next; with several askers it is the start's own, if it is one of them."""

    arrangement: int
    askers: tuple[int, ...]
    bound: Bound  # afterwards
    key: Key

    def of(self, start: int) -> Probe:
        return Probe(start if start in self.askers else self.askers[0], self.arrangement)


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
    if not searchable(graph, tuple(arrangements)):
        return stepwise(graph, arrangements, lambda probe, moved: costs.step(probe, 0.0, moved), legs, homes)
    best = _rests(graph, arrangements, costs)

    def of(start: int) -> Path | None:
        cost, probes = best(start, frozenset([start]), *_begin(graph, start, legs, homes))
        return None if cost == _NOWHERE else Path(start, probes)

    return of


@lru_cache(64)
def searchable(graph: JoinGraph, arrangements: tuple[Arrangement, ...]) -> bool:
    """Return whether there are few enough sets of bound inputs, so that all can be looked at."""
    if graph.inputs > MOST_INPUTS:
        return False
    moves, total = _moves(graph, arrangements), 0
    for start in range(graph.inputs):
        level = {frozenset([start])}
        while level and total <= MOST_SETS:
            total += len(level)
            level = {move.bound for bound in level for move in moves(bound)}
    return total <= MOST_SETS


def stepwise(
    graph: JoinGraph,
    arrangements: Sequence[Arrangement],
    by: Figure,
    legs: int | None = None,
    homes: Sequence[Key] = (),
) -> Search:
    """Return what finds the path that takes the probe with the least `by` at each step; of equal ones the lowest.

    Where legs run out, the last steps are taken back.
    """
    moves = _moves(graph, tuple(arrangements))

    def walk(start: int, bound: Bound, at: Key, left: int) -> tuple[Probe, ...] | None:
        if len(bound) == graph.inputs:
            return ()
        steps = [
            (by(probe := move.of(start), move.key != at), probe.arrangement, probe, move)
            for move in moves(bound)
            if left or move.key == at
        ]
        for _, _, probe, move in sorted(steps, key=lambda step: step[:2]):
            rest = walk(start, move.bound, move.key, left - (move.key != at))
            if rest is not None:
                return (probe, *rest)
        return None

    def of(start: int) -> Path | None:
        probes = walk(start, frozenset([start]), *_begin(graph, start, legs, homes))
        return None if probes is None else Path(start, probes)

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
    if not searchable(graph, tuple(arrangements)):
        one = search(graph, arrangements, costs, legs, homes)(start)
        return () if one is None else (one,)
    begin = _begin(graph, start, legs, homes)
    return tuple(islice(_in_order(graph, arrangements, costs, start, begin), most))


def _begin(graph: JoinGraph, start: int, legs: int | None, homes: Sequence[Key]) -> tuple[Key, int]:
    """Return the key by which the rows of an input lie, and how many exchanges their path may have."""
    most = graph.inputs if legs is None else legs
    return (homes[start], most - 1) if homes else ((), most)


@lru_cache(64)
def _moves(graph: JoinGraph, arrangements: tuple[Arrangement, ...]) -> Callable[[Bound], tuple[_Move, ...]]:
    """Return what finds the probes that tuples of a set of inputs can make: it depends on no figure, so it is kept."""

    @lru_cache(MOST_SETS)
    def of(bound: Bound) -> tuple[_Move, ...]:
        return tuple(
            _Move(number, askers, bound | {arrangements[number].input}, arrangements[number].key)
            for number, askers in askers_of(graph, arrangements, bound)
        )

    return of


def _rests(
    graph: JoinGraph, arrangements: Sequence[Arrangement], costs: PathCosts
) -> Callable[[int, Bound, Key, int], Rest]:
    """Return what finds the cheapest remainder of a path from a start: its cost for a tuple, and its probes."""
    moves = _moves(graph, tuple(arrangements))

    @cache
    def best(start: int, bound: Bound, at: Key, left: int) -> Rest:
        if len(bound) == graph.inputs:
            return 0.0, ()
        found: list[Rest] = []
        for move in moves(bound):
            moved = move.key != at
            if not left and moved:
                continue
            rest, behind = best(start, move.bound, move.key, left - moved)
            if rest < _NOWHERE:
                probe = move.of(start)
                # Without homes all paths begin with one exchange more, that of the row itself.
                found.append((costs.step(probe, rest, moved), (probe, *behind)))
        return min(found, default=(_NOWHERE, ()))

    return best


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
) -> Iterator[Path]:
    """Yield paths by their cost: a beginning is as cheap as its best remainder lets it be, which is known."""
    best, moves = _rests(graph, arrangements, costs), _moves(graph, tuple(arrangements))
    ties, (at, left) = count(), begin
    heap = [_Begun(0.0, next(ties), 0.0, 1.0, frozenset([start]), at, left, ())]
    while heap:
        so_far = heappop(heap)
        if len(so_far.bound) == graph.inputs:
            yield Path(start, so_far.probes)
            continue
        for move in moves(so_far.bound):
            moved, probe = move.key != so_far.at, move.of(start)
            if not so_far.left and moved:
                continue
            left = so_far.left - moved
            rest, _ = best(start, move.bound, move.key, left)
            if rest == _NOWHERE:
                continue
            spent = so_far.spent + so_far.tuples * costs.step(probe, 0.0, moved)
            tuples = so_far.tuples * costs.grown(probe)
            probes = (*so_far.probes, probe)
            whole = spent + tuples * rest
            heappush(heap, _Begun(whole, next(ties), spent, tuples, move.bound, move.key, left, probes))
