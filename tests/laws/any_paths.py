"""Paths that nobody chose: arrangements and paths at random, from all that there are. Results are the same by any."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from joinlib.path.choice import PathPlan
from joinlib.path.cost import PathCosts
from joinlib.path.estimate import PlanWork, Sizes
from joinlib.path.graph import Arrangement, JoinGraph, Path, Probe, next_probes, possible_arrangements
from joinlib.plan import considered


@contextmanager
def any_paths(seed: int) -> Iterator[None]:
    """Within it, a planner that is told to join by paths takes some at random."""

    def choose(sizes: Sizes, byte: float) -> PathPlan | None:
        return some_plan(sizes.graph, Random(seed))  # the same for the same join

    with patch.object(considered, "cheapest_plan", choose):
        yield


def some_plan(graph: JoinGraph, random: Random) -> PathPlan | None:
    """Arrangements by which every input reaches all others, and a path of each; None: all can be one operator."""
    if not graph.connected or any(len(members) == graph.inputs for members in graph.classes):
        return None
    kept = [*possible_arrangements(graph)]
    for one in random.sample(kept, random.randint(0, len(kept))):
        fewer = [other for other in kept if other != one]
        if all(some_path(graph, fewer, start, random) for start in range(graph.inputs)):
            kept = fewer
    paths = [some_path(graph, kept, start, random) for start in range(graph.inputs)]
    found = tuple(path for path in paths if path is not None)
    assert len(found) == graph.inputs
    return PathPlan(tuple(kept), found, PlanWork(), some_costs(graph, len(kept), random))


def some_costs(graph: JoinGraph, arrangements: int, random: Random) -> PathCosts:
    """Figures by which some other paths are among the cheapest."""

    def table() -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(random.random() for _ in range(arrangements)) for _ in range(graph.inputs))

    return PathCosts(table(), random.random(), table(), table(), random.random())


def some_path(
    graph: JoinGraph, arrangements: Sequence[Arrangement], start: int, random: Random
) -> Path | None:
    """A path over these arrangements, if there is one: what can be reached does not depend on the order."""
    probes = list[Probe]()
    bound = frozenset([start])
    while len(bound) < graph.inputs:
        open_ones = [*next_probes(graph, arrangements, bound, start)]
        if not open_ones:
            return None
        probes.append(random.choice(open_ones))
        bound |= {arrangements[probes[-1].arrangement].input}
    return Path(start, tuple(probes))
