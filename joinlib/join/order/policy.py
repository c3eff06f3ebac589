"""Policies that choose the probe orders: dpPick, or one of its peers (section 5.2).

auto         dpPick: the cheapest by the cost model
fixed        in the order of the inputs
selectivity  next is the input in which the fewest rows find partners (MJoin, GrubJoin)
greedy       next is the probe that costs least by itself (MultiStream)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import ne
from typing import TYPE_CHECKING

from joinlib.join.order.smoothing import HISTORY
from joinlib.model.tuning import Tuning
from joinlib.path.cost import PathCosts
from joinlib.path.graph import Arrangement, JoinGraph, Key, Path, Probe, next_probes
from joinlib.path.search import Figure, Search, search, stepwise

if TYPE_CHECKING:
    from joinlib.spec.model import ProbeOrder


@dataclass(frozen=True)
class Choices:
    """What probe orders are chosen from."""

    graph: JoinGraph
    arrangements: tuple[Arrangement, ...]
    routes: tuple[Path, ...] = ()  # the only paths that can be taken; none: all of the graph
    homes: tuple[Key, ...] = ()  # by which key the rows of each input come in; none: by any

    def cost(self, path: Path, costs: PathCosts) -> float:
        """Return the cost of a path for one row."""
        return costs.cost(path, self.arrangements, self.homes[path.start] if self.homes else None)

    def path(self, start: int, order: Sequence[int]) -> Path:
        """Return the path that probes arrangements in this order."""
        bound, probes = [start], list[Probe]()
        for number in order:
            found = next_probes(self.graph, self.arrangements, bound, start)
            probes.append(next(probe for probe in found if probe.arrangement == number))
            bound.append(self.arrangements[number].input)
        return Path(start, tuple(probes))

    def cheapest(self, start: int, costs: PathCosts, by: Figure | None) -> Path:
        """Return the cheapest route of an input; with `by` that whose first probe has the least, then its second, ..."""

        def figure(path: Path) -> tuple[float, ...]:
            if by is None:
                return (self.cost(path, costs),)
            keys = [self.arrangements[probe.arrangement].key for probe in path.probes]
            moved = map(ne, keys, [*self.homes[start : start + 1], *keys])
            return tuple(map(by, path.probes, moved))

        return min((path for path in self.routes if path.start == start), key=figure)


@dataclass(frozen=True)
class OrderPolicy:
    """A policy, and the parts of dpPick that it uses (section 5.3)."""

    policy: "ProbeOrder" = "auto"
    smooth: bool = True  # smooth figures over cycles; else use those of the last cycle
    query: bool = True  # count the cost of queries
    match: bool = True  # count the cost of tuples found
    fanned: bool = True  # each tuple probes by itself; else as in the paper's equation 8
    cycle: int = 8  # T, batches
    history: int = HISTORY  # L, cycles

    def paths(self, choices: Choices, costs: PathCosts) -> tuple[Path, ...]:
        """Return the path of the rows of each input."""
        if not self.query:
            costs = replace(costs, query=tuple((0.0,) * len(line) for line in costs.query))
        costs = replace(costs, match=costs.match if self.match else 0.0, fanned=self.fanned)
        found = map(choose(self.policy, choices, costs), range(choices.graph.inputs))
        return tuple(path for path in found if path is not None)


RULES: Mapping[str, OrderPolicy] = {  # the last four are for comparisons only
    "auto": OrderPolicy(),
    "fixed": OrderPolicy("fixed"),
    "selectivity": OrderPolicy("selectivity"),
    "greedy": OrderPolicy("greedy"),
    "query-only": OrderPolicy(match=False),
    "match-only": OrderPolicy(query=False),
    "unsmoothed": OrderPolicy(smooth=False),
    "unfanned": OrderPolicy(fanned=False),
}


def policy_of(tuning: Tuning) -> OrderPolicy:
    """Return the policy that the settings of a job name."""
    return replace(RULES[tuning.probe_order], cycle=tuning.probe_cycle, history=tuning.probe_history)


def choose(policy: "ProbeOrder", choices: Choices, costs: PathCosts) -> Search:
    """Return what finds the path that `policy` chooses for the rows of an input, with `costs` as they are."""
    arrangements = choices.arrangements
    steps: Mapping[str, Figure] = {
        "fixed": lambda probe, _: arrangements[probe.arrangement].input,
        "selectivity": lambda probe, _: costs.rate[probe.asker][probe.arrangement],
        "greedy": lambda probe, moved: costs.step(probe, 0.0, moved),
    }
    by = steps.get(policy)
    if choices.routes:
        return lambda start: choices.cheapest(start, costs, by)
    if by is not None:
        return stepwise(choices.graph, arrangements, by)
    return search(choices.graph, arrangements, costs)


def star(inputs: int) -> Choices:
    """Return what there is to choose where all inputs share one key, and each is stored by it."""
    graph = JoinGraph(inputs, (frozenset(range(inputs)),))
    return Choices(graph, tuple(Arrangement(i, (0,)) for i in range(inputs)))
