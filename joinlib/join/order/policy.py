"""Who chooses the orders: dpPick, or one of its peers (section 5.2).

auto         dpPick: the cheapest by the cost model; greedy where there are more than SEARCHED inputs
fixed        in the order of the inputs, for ever
selectivity  next is the input in which the fewest rows find partners (MJoin, GrubJoin)
greedy       next is the probe that costs least by itself (MultiStream)
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from joinlib.join.order.cost import Model, Pair
from joinlib.join.order.search import Sequence, exact, possible

Policy = Literal["auto", "fixed", "selectivity", "greedy"]
SEARCHED = 6  # inputs up to which every sequence is looked at


@dataclass(frozen=True)
class Rule:
    """A policy, and which parts of dpPick it goes without (section 5.3)."""

    policy: Policy = "auto"
    smooth: bool = True  # else the figures of the last cycle are those of the next
    query: bool = True  # queries cost something
    match: bool = True  # tuples that are found do
    fanned: bool = True  # each tuple asks for itself; else as the paper's equation 8 has it

    def choose(self, model: Model, edges: Collection[Pair], start: int) -> Sequence:
        """The probes of the rows of input `start`."""
        if not self.query:
            model = replace(model, query=(0.0,) * len(model.query))
        model = replace(model, match=model.match if self.match else 0.0, fanned=self.fanned)
        return choose(self.policy, model, edges, start)


RULES: Mapping[str, Rule] = {  # the last four only to be compared with
    "auto": Rule(),
    "fixed": Rule("fixed"),
    "selectivity": Rule("selectivity"),
    "greedy": Rule("greedy"),
    "query-only": Rule(match=False),
    "match-only": Rule(query=False),
    "unsmoothed": Rule(smooth=False),
    "unfanned": Rule(fanned=False),
}


def choose(policy: Policy, model: Model, edges: Collection[Pair], start: int) -> Sequence:
    """As above, by the model as it is."""
    if policy == "fixed":
        return stepwise(edges, start, lambda edge: edge[1])
    if policy == "selectivity":
        return stepwise(edges, start, lambda edge: model.rate[edge[0]][edge[1]])
    if policy == "greedy" or len(model.query) > SEARCHED:
        return stepwise(edges, start, lambda edge: model.step(edge, 0.0))
    return exact(model, edges, start)


def stepwise(edges: Collection[Pair], start: int, by: Callable[[Pair], float]) -> Sequence:
    """Always the probe that is least `by` some figure; of equal ones that of the lowest input."""
    bound, done = {start}, list[Pair]()
    while left := possible(edges, bound):
        done.append(min(left, key=lambda edge: (by(edge), edge)))
        bound.add(done[-1][1])
    return tuple(done)


def star(start: int, inputs: int) -> list[Pair]:
    """The join graph of one key class as a row of `start` sees it: its own key is what asks, everywhere."""
    return [(start, other) for other in range(inputs) if other != start]
