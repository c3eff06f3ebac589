"""Policies that choose the probe orders: dpPick, or one of its peers (section 5.2).

auto         dpPick: the cheapest by the cost model
fixed        in the order of the inputs
selectivity  next is the input in which the fewest rows find partners (MJoin, GrubJoin)
greedy       next is the probe that costs least by itself (MultiStream)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from joinlib.join.order.smoothing import HISTORY
from joinlib.model.tuning import Tuning
from joinlib.path.cost import PathCosts
from joinlib.path.graph import Arrangement, JoinGraph, Path
from joinlib.path.search import Search, search, stepwise

if TYPE_CHECKING:
    from joinlib.spec.model import ProbeOrder


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

    def paths(
        self, graph: JoinGraph, arrangements: Sequence[Arrangement], costs: PathCosts
    ) -> tuple[Path, ...]:
        """Return the path of the rows of each input."""
        if not self.query:
            costs = replace(costs, query=tuple((0.0,) * len(line) for line in costs.query))
        costs = replace(costs, match=costs.match if self.match else 0.0, fanned=self.fanned)
        found = map(choose(self.policy, graph, arrangements, costs), range(graph.inputs))
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


def choose(
    policy: "ProbeOrder", graph: JoinGraph, arrangements: Sequence[Arrangement], costs: PathCosts
) -> Search:
    """Return what finds the path that `policy` chooses for the rows of an input, with `costs` as they are."""
    if policy == "fixed":
        return stepwise(graph, arrangements, lambda probe, _: arrangements[probe.arrangement].input)
    if policy == "selectivity":
        return stepwise(graph, arrangements, lambda probe, _: costs.rate[probe.asker][probe.arrangement])
    if policy == "greedy":
        return stepwise(graph, arrangements, lambda probe, moved: costs.step(probe, 0.0, moved))
    return search(graph, arrangements, costs)


def star(inputs: int) -> tuple[JoinGraph, tuple[Arrangement, ...]]:
    """Return the join graph of inputs that share one key, each stored by it."""
    return JoinGraph(inputs, (frozenset(range(inputs)),)), tuple(Arrangement(i, (0,)) for i in range(inputs))
