"""The routes that new rows of a path join take: chosen in each unit of its state, as probe orders are.

    level 0   counts of the first legs ─┐
    level 1   counts of its own legs  ──┼─► end of a cycle: statistics ─► next routes, among those of the plan
    level 2   …                       ──┘

Each level counts what its probes find and keeps that in its manifest, beside the cycle that it belongs to. A unit
hears the units of its own number, as they were after the batch before: keys are hashed, so they are a fair sample.
State stays as it is: all routes ask the same arrangements.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from joinlib.join.order.orders import Orders, counting, orders_of
from joinlib.join.order.policy import Choices, OrderPolicy, policy_of
from joinlib.join.order.statistics import nothing
from joinlib.join.order.watch import ProbeCounts, Watch
from joinlib.model.stage import PathStage
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import Manifest
from joinlib.state.side import Side

Hops = Callable[[], Iterable[Manifest]]
Saved = Sequence[Mapping[str, Any]]  # `probes` of a manifest


@dataclass(frozen=True)
class Routes:
    """The routes of one unit in the next batch."""

    stage: PathStage
    policy: OrderPolicy
    orders: Orders
    hops: Hops

    @classmethod
    def of(cls, stage: PathStage, saved: Saved, policy: OrderPolicy, hops: Hops) -> "Routes":
        """Return the routes saved in a manifest; those that the plan does not have are its first ones instead.

        hops: returns the manifests of the units of later levels with the same number, after the batch before.
        """
        initial = _initial(stage)
        known = initial if policy.policy == "fixed" else orders_of(saved[0] if saved else None, initial)
        there = [{_order(stage, number) for number in stage.routes(one)} for one in range(len(known.orders))]
        orders = [
            own if tuple(own) in there[one] else initial.orders[one] for one, own in enumerate(known.orders)
        ]
        return cls(stage, policy, replace(known, orders=orders), hops)

    def taken(self, origin: int) -> int:
        """Return the route that the rows of an input take."""
        order = tuple(self.orders.orders[origin])
        return next(number for number in self.stage.routes(origin) if _order(self.stage, number) == order)

    def watch(self) -> Watch | None:
        """Return a counter for the next batch; None if nothing is chosen."""
        if self.policy.policy == "fixed":
            return None
        return self.orders.watch(choices_of(self.stage), self.policy)

    def after(self, watch: Watch | None, sides: Sequence[Side]) -> "Routes":
        """Return the routes after one more batch with rows."""
        if watch is None:
            return self
        cycle, choices = self.orders.cycles, choices_of(self.stage)
        went = self.orders.after(watch, sides, choices, self.policy, lambda: heard(self.hops(), cycle))
        return replace(self, orders=went)

    def plain(self) -> tuple[dict[str, Any], ...]:
        """Return what is saved in the manifest."""
        return () if self.policy.policy == "fixed" else (self.orders.plain(),)

    @property
    def chosen(self) -> tuple[dict[str, Any], ...]:
        """The figures, if routes were chosen after the last batch."""
        return (self.orders.figures(),) if self.orders.cycles and not self.orders.batches else ()


@dataclass(frozen=True)
class HopCounts:
    """What one unit of a later level has counted in the current cycle."""

    cycle: int
    watch: Watch | None  # None: nobody chooses

    def plain(self) -> tuple[dict[str, Any], ...]:
        """Return what is saved in the manifest."""
        if self.watch is None:
            return ()
        return ({"cycle": self.cycle, "turns": self.watch.turns, "counts": self.watch.counts.plain()},)


def hop_counts(own: Saved, asked: Saved, store: PathStage, tuning: Tuning) -> HopCounts:
    """Return the counts to go on from.

    own: `probes` of the unit's manifest before the batch. asked: those of the unit that chooses, after it: where
    it has begun a new cycle, the counts begin anew, too.
    """
    if not asked:
        return HopCounts(0, None)
    orders, policy = orders_of(asked[0], _initial(store)), policy_of(tuning)
    known: Mapping[str, Any] = own[0] if own else {"cycle": 0, "turns": [], "counts": []}
    counts = known["counts"] if known["cycle"] == orders.cycles else []
    watch = counting(counts, known["turns"], choices_of(store), orders.every(policy))
    return HopCounts(orders.cycles, watch)


def heard(manifests: Iterable[Manifest], cycle: int) -> list[ProbeCounts]:
    """Return what units of later levels have counted in a cycle."""
    saved = (probes for manifest in manifests for probes in manifest.probes)
    return [ProbeCounts.read(p["counts"]) for p in saved if p["counts"] and p["cycle"] == cycle]


def choices_of(stage: PathStage) -> Choices:
    """Return what routes are chosen from."""
    first = (stage.paths[route].probes[0] for route in stage.orders)  # the plan brings rows in by its key
    homes = tuple(stage.arrangements[probe.arrangement].key for probe in first)
    return Choices(stage.graph, stage.arrangements, stage.paths, homes)


def _initial(stage: PathStage) -> Orders:
    orders = [list(_order(stage, number)) for number in stage.orders]
    return Orders(orders, nothing(stage.graph.inputs, len(stage.arrangements)).plain())


def _order(stage: PathStage, route: int) -> tuple[int, ...]:
    return tuple(probe.arrangement for probe in stage.paths[route].probes)
