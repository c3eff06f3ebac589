"""Finds the cheapest path of each input (dpPick, algorithm 3, over any join graph, with exchanges).

What the probes after a step cost depends on the inputs that are bound before them and on the key by which the
tuples lie, not on their order and not on where the path began. So the best remainder is found once for each
such pair, O(2^inputs · keys · arrangements) steps for all inputs together, instead of all paths.
"""

from collections.abc import Callable, Sequence
from functools import cache

from joinlib.path.cost import PathCosts
from joinlib.path.graph import Arrangement, JoinGraph, Key, Path, Probe, next_probes

_NOWHERE = float("inf")
Rest = tuple[float, tuple[Probe, ...]]
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

    @cache
    def best(bound: frozenset[int], at: Key, left: int) -> Rest:
        if len(bound) == graph.inputs:
            return 0.0, ()
        found: list[Rest] = []
        for probe in next_probes(graph, arrangements, bound):
            aim = arrangements[probe.arrangement]
            moved = aim.key != at
            if moved and not left:
                continue
            rest, behind = best(bound | {aim.input}, aim.key, left - moved)
            if rest < _NOWHERE:
                # Without homes all paths begin with one exchange more, that of the row itself.
                found.append((costs.step(probe, rest, moved), (probe, *behind)))
        return min(found, default=(_NOWHERE, ()))

    def of(start: int) -> Path | None:
        most = graph.inputs if legs is None else legs
        at, left = (homes[start], most - 1) if homes else ((), most)
        cost, probes = best(frozenset([start]), at, left)
        return None if cost == _NOWHERE else Path(start, probes)

    return of


def cheapest_paths(
    graph: JoinGraph, arrangements: Sequence[Arrangement], costs: PathCosts, legs: int | None = None
) -> tuple[Path, ...] | None:
    """Return the cheapest path of each input; None if the arrangements do not let each of them reach all others."""
    found = map(search(graph, arrangements, costs, legs), range(graph.inputs))
    paths = tuple(path for path in found if path is not None)
    return paths if len(paths) == graph.inputs else None
