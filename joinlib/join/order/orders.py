"""The probe orders of one operator: saved in its unit's manifest and chosen again at the end of each cycle.

    orders of the last batch ─► probes of this one ─► end of a cycle? counted ─► statistics ─► next orders

Only the last batch of a cycle is counted: it predicts the following ones best, and counting adds a tenth to
the time of what it counts. Where the current orders would do as well as new ones, the next cycles are longer.

A batch that runs again has the same orders. Only measured seconds differ between two attempts, and the result
does not depend on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from joinlib.index.unchained import Unchained
from joinlib.join.order.policy import OrderPolicy, star
from joinlib.join.order.statistics import StateSize, Statistics, nothing, short
from joinlib.join.order.watch import Watch
from joinlib.state.side import Side

CALM = 2  # the length of a cycle is doubled at most this many times
NEAR = 1.05  # orders whose cost is within this factor of the best are kept


@dataclass(frozen=True)
class Orders:
    """The orders after one batch.

    All values are of JSON's types: most batches pass on what was in the manifest.
    """

    orders: list[list[int]]  # for each input, the inputs that its rows probe, in order
    known: list[Any]  # statistics, as `Statistics.plain` writes them
    cycles: int = 0  # completed cycles
    batches: int = 0  # batches with rows in the current cycle
    calm: int = 0  # consecutive cycles at whose end the current orders were good enough
    predicted: list[float | None] = field(default_factory=list)  # seconds per row, by the model
    measured: list[float | None] = field(default_factory=list)  # seconds per row, last cycle

    def watch(self, length: int) -> Watch | None:
        """Return a counter for the next batch if it is the last of its cycle, else None.

        length: batches of a full cycle. The first cycles are short: 1, 2, 4, … Every other cycle is one
        batch shorter, so that an input with rows in every second batch only is counted too.
        """
        most = min(length << min(self.calm, CALM), 1 << min(self.cycles, 30))
        last = self.batches + 1 >= most - self.cycles % 2
        return Watch(len(self.orders)) if last else None

    def after(self, watch: Watch | None, sides: list[Side], rule: OrderPolicy) -> "Orders":
        """Return the orders after one more batch with rows; a batch that was counted ends the cycle."""
        if watch is None:
            return replace(self, batches=self.batches + 1)
        return self._next(watch, [size(side) for side in sides], rule)

    @property
    def statistics(self) -> Statistics:
        """The statistics at the end of the last cycle."""
        return Statistics.read(self.known)

    def _next(self, watch: Watch, sizes: list[StateSize], rule: OrderPolicy) -> "Orders":
        known = self.statistics.after(watch, sizes, rule.smooth)
        model = known.model(sizes)
        chosen = [rule.choose(model, star(i, len(sizes)), i) for i in range(len(sizes))]
        costs = [model.cost(sequence) for sequence in chosen]
        had = [model.cost([(i, r) for r in order]) for i, order in enumerate(self.orders)]
        measured = zip(watch.spent, watch.rows, strict=True)
        return Orders(
            [[r for _, r in sequence] for sequence in chosen],
            known.plain(),
            self.cycles + 1,
            calm=self.calm + 1 if all(h <= NEAR * c for h, c in zip(had, costs, strict=True)) else 0,
            predicted=[short(cost) for cost in costs],
            measured=[short(spent / rows) if rows else None for spent, rows in measured],
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


def orders_of(saved: Mapping[str, Any] | None, inputs: int) -> Orders:
    """Return the orders saved in a manifest, or the initial ones."""
    if not saved or len(saved["orders"]) != inputs:
        return first(inputs)
    return Orders(**{name: saved[name] for name in _FIELDS if name in saved})


def first(inputs: int) -> Orders:
    """Return the initial orders, before any statistics: in the order of the inputs."""
    orders = [[o for o in range(inputs) if o != i] for i in range(inputs)]
    return Orders(orders, nothing(inputs).plain())


def size(side: Side) -> StateSize:
    """Return the size of what a probe of `side` searches.

    These are hash indexes: only joins by a key have more than two inputs.
    """
    indexes = [live.index for live in side.runs if not isinstance(live.index, Unchained)]
    return StateSize(sum(i.keys for i in indexes), sum(i.slots for i in indexes) or 1, max(len(indexes), 1))
