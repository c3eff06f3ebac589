"""Policies that choose the probe orders: dpPick, or one of its peers (section 5.2).

auto         dpPick: the cheapest by the cost model; greedy where there are more than SEARCHED inputs
fixed        in the order of the inputs
selectivity  next is the input in which the fewest rows find partners (MJoin, GrubJoin)
greedy       next is the probe that costs least by itself (MultiStream)
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from joinlib.join.order.cost import CostModel, Pair
from joinlib.join.order.search import Sequence, exact, possible

if TYPE_CHECKING:
    from joinlib.spec.model import ProbeOrder

SEARCHED = 6  # largest number of inputs for which all sequences are considered


@dataclass(frozen=True)
class OrderPolicy:
    """A policy, and the parts of dpPick that it uses (section 5.3)."""

    policy: "ProbeOrder" = "auto"
    smooth: bool = True  # smooth figures over cycles; else use those of the last cycle
    query: bool = True  # count the cost of queries
    match: bool = True  # count the cost of tuples found
    fanned: bool = True  # each tuple probes by itself; else as in the paper's equation 8

    def choose(self, model: CostModel, edges: Collection[Pair], start: int) -> Sequence:
        """Return the sequence of probes of the rows of input `start`."""
        if not self.query:
            model = replace(model, query=(0.0,) * len(model.query))
        model = replace(model, match=model.match if self.match else 0.0, fanned=self.fanned)
        return choose(self.policy, model, edges, start)


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


def choose(policy: "ProbeOrder", model: CostModel, edges: Collection[Pair], start: int) -> Sequence:
    """Return the sequence of probes that `policy` chooses for input `start`, with `model` as it is."""
    if policy == "fixed":
        return stepwise(edges, start, lambda edge: edge[1])
    if policy == "selectivity":
        return stepwise(edges, start, lambda edge: model.rate[edge[0]][edge[1]])
    if policy == "greedy" or len(model.query) > SEARCHED:
        return stepwise(edges, start, lambda edge: model.step(edge, 0.0))
    return exact(model, edges, start)


def stepwise(edges: Collection[Pair], start: int, by: Callable[[Pair], float]) -> Sequence:
    """Choose the probe with the least `by` at each step; of equal ones that of the lowest input."""
    bound, done = {start}, list[Pair]()
    while left := possible(edges, bound):
        done.append(min(left, key=lambda edge: (by(edge), edge)))
        bound.add(done[-1][1])
    return tuple(done)


def star(start: int, inputs: int) -> list[Pair]:
    """Return the join graph of one key class for a row of `start`, whose own key probes every input."""
    return [(start, other) for other in range(inputs) if other != start]
