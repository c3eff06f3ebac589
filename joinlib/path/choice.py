"""Chooses which arrangements a join by paths stores, and the cheapest stages.

Fewer arrangements take less state, but make longer paths. The search begins with all that some path may want
and leaves one out after the other, as long as time and state together get no dearer: O(arrangements²) searches.

Stages are found by dynamic programming over the sets of inputs that hang together: each set is the join of two
smaller ones, or of several inputs and at most one smaller set by a key that all of them share. O(3^inputs); of more
inputs than SEARCHED, those that join to fewest tuples are joined first, whatever the rest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from joinlib.path.cost import PathCosts
from joinlib.path.estimate import (
    PlanWork,
    Prices,
    Sizes,
    StagePlan,
    inputs_of,
    merged_sizes,
    path_work,
    staged,
)
from joinlib.path.graph import Arrangement, JoinGraph, Path, possible_arrangements
from joinlib.path.search import cheapest_paths

SEARCHED = 8  # parts whose orders are all looked at
Allowed = Callable[[frozenset[int]], bool]
MOST_LEFT_OUT = 8  # inputs of which fewer arrangements than all are tried
BYTE = 1e-9  # seconds that a byte of state is worth: 1 GB is a second


@dataclass(frozen=True)
class PathPlan:
    """The arrangements of a path join, and the path of each input."""

    arrangements: tuple[Arrangement, ...]
    paths: tuple[Path, ...]
    work: PlanWork
    costs: PathCosts  # by which other paths over these arrangements can be compared


def price(work: PlanWork, prices: Prices, byte: float = BYTE) -> float:
    """Return time and state as one figure."""
    return work.seconds(prices) + work.bytes * byte


def by_paths(sizes: Sizes, prices: Prices, *, byte: float = BYTE, legs: int | None = None) -> PathPlan | None:
    """Return the cheapest path join that the search finds; None if no path of at most `legs` legs reaches all inputs."""
    kept = possible_arrangements(sizes.graph)
    best = _planned(sizes, kept, prices, legs)
    if best is None:
        return None
    while sizes.graph.inputs <= MOST_LEFT_OUT and (shorter := _without_one(sizes, best, prices, byte, legs)):
        best = shorter
    return best


def _without_one(
    sizes: Sizes, plan: PathPlan, prices: Prices, byte: float, legs: int | None
) -> PathPlan | None:
    """Return the best plan with one arrangement less, if it is cheaper."""
    rests = combinations(plan.arrangements, len(plan.arrangements) - 1)
    found = [made for rest in rests if (made := _planned(sizes, rest, prices, legs)) is not None]
    best = min(found, key=lambda made: price(made.work, prices, byte), default=None)
    if best is None or price(best.work, prices, byte) >= price(plan.work, prices, byte):
        return None
    return best


def _planned(
    sizes: Sizes, arrangements: Sequence[Arrangement], prices: Prices, legs: int | None
) -> PathPlan | None:
    """Return the cheapest paths over some of these arrangements, which are then all that is stored."""
    costs = sizes.costs(arrangements, prices)
    paths = cheapest_paths(sizes.graph, arrangements, costs, legs)
    if paths is None:
        return None
    used = sorted({arrangements[probe.arrangement] for path in paths for probe in path.probes})
    if len(used) < len(arrangements):
        return _planned(sizes, used, prices, legs)
    return PathPlan(tuple(arrangements), paths, path_work(sizes, arrangements, paths), costs)


def by_stages(
    sizes: Sizes, prices: Prices, byte: float = BYTE, allowed: Allowed = lambda _: True
) -> StagePlan | None:
    """Return the cheapest stages; None if no class relates some inputs."""
    parts = _fewer(sizes, allowed)
    bound = [inputs_of(part) for part in parts]
    merged = merged_sizes(sizes, bound)

    def whole(of: frozenset[int]) -> bool:
        return allowed(frozenset().union(*(bound[at] for at in of)))

    found = stages(merged, prices, byte, whole)(frozenset(range(len(parts))))
    return None if found is None else _of_parts(sizes, parts, found)


def _fewer(sizes: Sizes, allowed: Allowed) -> list[StagePlan | int]:
    """Return at most SEARCHED parts, if that is possible: those that join to fewest tuples are united first."""
    parts: list[StagePlan | int] = list(range(sizes.graph.inputs))
    while len(parts) > SEARCHED:
        bound = [inputs_of(part) for part in parts]
        held = [sizes.graph.held(of) for of in bound]
        pairs = [
            (sizes.tuples(bound[one] | bound[two]), one, two)
            for one, two in combinations(range(len(parts)), 2)
            if held[one] & held[two] and allowed(bound[one] | bound[two])
        ]
        if not pairs:
            break
        _, one, two = min(pairs)
        joined = staged(sizes, [parts[one], parts[two]])
        parts = [*(part for at, part in enumerate(parts) if at not in (one, two)), joined]
    return parts


def _of_parts(sizes: Sizes, parts: Sequence[StagePlan | int], plan: StagePlan) -> StagePlan:
    """Return a plan over parts as one over inputs."""
    return staged(sizes, [parts[p] if isinstance(p, int) else _of_parts(sizes, parts, p) for p in plan.parts])


def stages(
    sizes: Sizes, prices: Prices, byte: float = BYTE, allowed: Allowed = lambda _: True
) -> Callable[[frozenset[int]], StagePlan | None]:
    """Return what finds the cheapest stages of two or more inputs; None if no class relates some of them.

    allowed: whether a set of inputs may be what a stage joins.
    """
    graph = sizes.graph

    @cache
    def best(bound: frozenset[int]) -> StagePlan | None:
        if not allowed(bound):
            return None
        found = []
        for halves in (*_halves(bound), *_by_one_key(graph, bound)):
            if not frozenset.intersection(*map(graph.held, halves)):
                continue
            parts = [next(iter(half)) if len(half) == 1 else best(half) for half in halves]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts):
                found.append(staged(sizes, known))
        return min(found, key=lambda plan: price(plan.work, prices, byte), default=None)

    return best


def _by_one_key(graph: JoinGraph, bound: frozenset[int]) -> Iterator[tuple[frozenset[int], ...]]:
    """Yield the ways to join three or more parts by what all of them share: single inputs, and the rest.

    Of two that share more, less would be found by all that they share: such ways are left out.
    """
    for key in {graph.of(one) for one in bound} | {frozenset([c]) for c in range(len(graph.classes))}:
        members = [one for one in sorted(bound) if graph.of(one).issuperset(key)]
        for count in range(2, len(members) + 1) if key else ():
            for some in combinations(members, count):
                rest = bound.difference(some)
                parts = (*(frozenset([one]) for one in some), *([rest] if rest else []))
                if len(parts) > 2 and len(rest) != 1 and _share_no_more(graph, parts):
                    yield parts


def _share_no_more(graph: JoinGraph, parts: Sequence[frozenset[int]]) -> bool:
    held = [graph.held(part) for part in parts]
    shared = frozenset.intersection(*held)
    return bool(shared) and all(one & two == shared for one, two in combinations(held, 2))


def _halves(bound: frozenset[int]) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """Yield all ways to cut a set in two; the first half has its lowest member."""
    first, *others = sorted(bound)
    for count in range(len(others)):
        for some in combinations(others, count):
            left = frozenset((first, *some))
            yield left, bound - left
