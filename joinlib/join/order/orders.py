"""The probe orders of one operator: saved in its unit's manifest and chosen again at the end of each cycle.

    orders of the last batch ─► probes of this one ─► counts of the cycle ─► its end? statistics ─► next orders

Of the new rows in a cycle every 8th chunk is counted: counting adds a tenth to the time of what it counts. Where
the current orders would do as well as new ones, the next cycles are longer.

A batch that runs again has the same orders. Only measured seconds differ between two attempts, and the result
does not depend on them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from joinlib.index.chains import Chains
from joinlib.index.sealed import Sealed
from joinlib.join.order.policy import Choices, OrderPolicy
from joinlib.join.order.statistics import StateSize, Statistics, nothing, short
from joinlib.join.order.watch import EVERY, ProbeCounts, Watch
from joinlib.path.cost import SearchedRun
from joinlib.path.estimate import Prices
from joinlib.state.side import Side

CALM = 2  # the length of a cycle is doubled at most this many times
EXCHANGE = Prices().exchange  # αx, which no unit can measure: tuples leave it, and others come
Later = Callable[[], Iterable[ProbeCounts]]
NEAR = 1.05  # orders whose cost is within this factor of the best are kept


@dataclass(frozen=True)
class Orders:
    """The orders after one batch.

    All values are of JSON's types: most batches pass on what was in the manifest.
    """

    orders: list[
        list[int]
    ]  # for each input, the arrangements that its rows probe, in order: of one key, the inputs
    known: list[Any]  # statistics, as `Statistics.plain` writes them
    cycles: int = 0  # completed cycles
    batches: int = 0  # batches with rows in the current cycle
    calm: int = 0  # consecutive cycles at whose end the current orders were good enough
    predicted: list[float | None] = field(default_factory=list)  # seconds per row, by the model
    measured: list[float | None] = field(default_factory=list)  # seconds per row, last cycle
    turns: list[int] = field(default_factory=list)  # chunks of new rows of each input, ever
    counts: list[Any] = field(
        default_factory=list
    )  # of the current cycle, as `ProbeCounts.plain` writes them

    def length(self, policy: OrderPolicy) -> int:
        """Return the batches of the current cycle. The first cycles are short: 1, 2, 4, …"""
        return min(policy.cycle << min(self.calm, CALM), 1 << min(self.cycles, 30))

    def watch(self, choices: Choices, policy: OrderPolicy) -> Watch:
        """Return a counter for the next batch."""
        return counting(self.counts, self.turns, choices, self.every(policy))

    def every(self, policy: OrderPolicy) -> int:
        """Return of how many chunks one is counted."""
        return min(self.length(policy), EVERY)

    def after(
        self, watch: Watch, sides: Sequence[Side], choices: Choices, policy: OrderPolicy, later: Later = list
    ) -> "Orders":
        """Return the orders after one more batch with rows, which may end the cycle.

        later: called at the end of a cycle; returns what the later levels of a path join have counted in it.
        """
        went = replace(self, batches=self.batches + 1, turns=watch.turns, counts=watch.counts.plain())
        if went.batches < self.length(policy):
            return went
        return went._next(watch.counts.and_later(later()), [size(side) for side in sides], choices, policy)

    @property
    def statistics(self) -> Statistics:
        """The statistics at the end of the last cycle."""
        return Statistics.read(self.known)

    def _next(
        self, seen: ProbeCounts, sizes: list[StateSize], choices: Choices, policy: OrderPolicy
    ) -> "Orders":
        known = self.statistics.after(seen, sizes, policy.history if policy.smooth else None)
        model = known.model(sizes, choices.arrangements, EXCHANGE)
        chosen = policy.paths(choices, model)
        costs = [choices.cost(path, model) for path in chosen]
        had = [choices.cost(choices.path(i, order), model) for i, order in enumerate(self.orders)]
        measured = zip(seen.spent, seen.rows, strict=True)
        return Orders(
            [[probe.arrangement for probe in path.probes] for path in chosen],
            known.plain(),
            self.cycles + 1,
            calm=self.calm + 1 if all(h <= NEAR * c for h, c in zip(had, costs, strict=True)) else 0,
            predicted=[short(cost) for cost in costs],
            measured=[short(spent / rows) if rows else None for spent, rows in measured],
            turns=self.turns,
        )

    def figures(self) -> dict[str, Any]:
        """Return orders, statistics, and predicted and measured costs, for monitoring."""
        return {
            "orders": self.orders,
            "known": self.known,
            "predicted": self.predicted,
            "measured": self.measured,
        }

    def plain(self) -> dict[str, Any]:
        """Return the fields as saved in the manifest."""
        return vars(self)


_FIELDS = [f.name for f in fields(Orders)]  # an older manifest may have more fields


def orders_of(saved: Mapping[str, Any] | None, initial: Orders) -> Orders:
    """Return the orders saved in a manifest, or the initial ones."""
    if not saved or len(saved["orders"]) != len(initial.orders):
        return initial
    return Orders(**{name: saved[name] for name in _FIELDS if name in saved})


def first(inputs: int) -> Orders:
    """Return the initial orders of a join by one key, before any statistics: in the order of the inputs."""
    orders = [[o for o in range(inputs) if o != i] for i in range(inputs)]
    return Orders(orders, nothing(inputs, inputs).plain())


def counting(counts: list[Any], turns: list[int], choices: Choices, every: int) -> Watch:
    """Return a counter that goes on from what was saved; `every`: chunks of which one is counted."""
    n, each = choices.graph.inputs, len(choices.arrangements)
    begun = ProbeCounts.read(counts) if counts else ProbeCounts.none(n, each)
    return Watch(begun, list(turns) or [0] * n, every)


def size(side: Side) -> StateSize:
    """Return the size of what a probe of `side` searches.

    These are indexes by hash: only joins by a key have more than two inputs.
    """
    runs, rows = [], 0
    for live in side.runs:
        index = live.index
        rows += live.run.rows
        if isinstance(index, Chains):
            runs.append(SearchedRun(index.keys, index.slots))
        elif isinstance(index, Sealed):
            runs.append(SearchedRun(index.keys, cached=index.cached))
    return StateSize(tuple(runs), rows)
