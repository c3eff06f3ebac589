"""The probe orders of one operator: they ride in its unit's manifest, and are chosen anew when a cycle ends.

    orders of the batch before ─► probes of this one ─► the last of a cycle? counted ─► statistics ─► orders of the next

One batch of a cycle is counted: the last says most about those to come, and counting costs a tenth of what it counts. Where
cycles would do as well with the orders they had, the next ones are longer.

So a batch that runs again has the orders that it had. Only seconds differ between two attempts: the answer hangs on none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from joinlib.index.unchained import Unchained
from joinlib.join.order.policy import Rule, star
from joinlib.join.order.statistics import Size, Statistics, nothing, short
from joinlib.join.order.watch import Watch
from joinlib.state.side import Side

CALM = 2  # so many times at most the length of a cycle is doubled
NEAR = 1.05  # orders that cost up to so much more than the best would do as well


@dataclass(frozen=True)
class Orders:
    """After one batch. All values are as JSON has them: most batches only hand on what the manifest said."""

    orders: list[list[int]]  # of each input, those that its rows ask, one after the other
    known: list[Any]  # statistics, as `Statistics.plain` writes them
    cycles: int = 0  # that have ended
    batches: int = 0  # of the running cycle, those without rows left out
    calm: int = 0  # cycles at whose end the orders that they had would have done as well, in a row
    predicted: list[float | None] = field(default_factory=list)  # seconds a row, when the orders were chosen
    measured: list[float | None] = field(default_factory=list)  # the same in the cycle before, as it was

    def watch(self, length: int) -> Watch | None:
        """What counts the next batch, if it is the last of its cycle. The first cycles are short: 1, 2, 4, …

        Each other one is a batch shorter: an input that has rows in every second batch only is counted too.
        """
        most = min(length << min(self.calm, CALM), 1 << min(self.cycles, 30))
        last = self.batches + 1 >= most - self.cycles % 2
        return Watch(len(self.orders)) if last else None

    def after(self, watch: Watch | None, sides: list[Side], rule: Rule) -> "Orders":
        """One batch with rows later; the cycle has ended if it was counted."""
        if watch is None:
            return replace(self, batches=self.batches + 1)
        return self._next(watch, [size(side) for side in sides], rule)

    @property
    def statistics(self) -> Statistics:
        """As the last cycle left them."""
        return Statistics.read(self.known)

    def _next(self, watch: Watch, sizes: list[Size], rule: Rule) -> "Orders":
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
        """For whoever watches: orders, statistics, and what rows were to cost and did."""
        return {
            "orders": self.orders,
            "known": self.known,
            "predicted": self.predicted,
            "measured": self.measured,
        }

    def plain(self) -> dict[str, Any]:
        """For the manifest."""
        return vars(self)


_FIELDS = [f.name for f in fields(Orders)]  # an older manifest may hold more


def orders_of(saved: Mapping[str, Any] | None, inputs: int) -> Orders:
    """Those that a manifest holds, or the first ones."""
    if not saved or len(saved["orders"]) != inputs:
        return first(inputs)
    return Orders(**{name: saved[name] for name in _FIELDS if name in saved})


def first(inputs: int) -> Orders:
    """Before anything is known: in the order of the inputs."""
    orders = [[o for o in range(inputs) if o != i] for i in range(inputs)]
    return Orders(orders, nothing(inputs).plain())


def size(side: Side) -> Size:
    """What is searched when it is asked: by hashes, since only joins by a key have more than two inputs."""
    indexes = [live.index for live in side.runs if not isinstance(live.index, Unchained)]
    return Size(sum(i.keys for i in indexes), sum(i.slots for i in indexes) or 1, max(len(indexes), 1))
