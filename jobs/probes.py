"""Probe orders and their costs, over all units; pure.

Each unit has its own orders: the most common one is shown, figures are means over the units that have some,
numbers of keys are sums.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joinlib.model.joins import Join, Leaf
from joinlib.model.stage import PathStage, Pipeline, Stage

UnitJoins = Sequence[Mapping[str, Any]]  # the figures of each join of one unit, from its receipt


@dataclass(frozen=True)
class Chooser:
    """A join that has probe orders: an inner join of three inputs or more, or one by paths, which has routes."""

    stage: int
    place: int  # its position among those of its stage, children first, as units number them
    units: int  # per stage
    inputs: tuple[str, ...]
    store: PathStage | None = None  # of a join by paths

    @property
    def asked(self) -> tuple[str, ...]:
        """What is asked: the inputs, or where a join by paths stores one by several keys, these."""
        if self.store is None:
            return self.inputs
        every = [
            (self.inputs[a.input], self.store.sides[n].keys) for n, a in enumerate(self.store.arrangements)
        ]
        often = Counter(name for name, _ in every)
        return tuple(f"{name} by {', '.join(keys)}" if often[name] > 1 else name for name, keys in every)

    def state(self, one: int) -> int | None:
        """Return the number of what is asked of an input; of several the first, None if it is never asked."""
        if self.store is None:
            return one
        return next((n for n, a in enumerate(self.store.arrangements) if a.input == one), None)

    def askers(self, one: int, order: Sequence[int]) -> tuple[int, ...]:
        """Return the input whose key asks, for each probe of an order of an input."""
        ways = () if self.store is None else self.store.paths
        for way in ways:
            if way.start == one and [probe.arrangement for probe in way.probes] == list(order):
                return tuple(probe.asker for probe in way.probes)
        return (one,) * len(order)

    def reported(self, known: Mapping[int, UnitJoins]) -> list[Mapping[str, Any]]:
        """Return what the units report of this join.

        `known` holds the reports by unit, where units of later stages follow those of earlier ones.
        """
        return [joins[self.place] for unit, joins in known.items() if unit // self.units == self.stage]


@dataclass(frozen=True)
class Asks:
    """The probes of one input's rows.

    `others` lists the inputs in the most common order; figures are parallel to it.
    """

    name: str
    others: tuple[str, ...]
    share: float  # the share of units that have this order
    position: tuple[float, ...]  # mean over units; 1 is first
    rate: tuple[float | None, ...]  # γ
    per_hit: tuple[float | None, ...]  # μ
    keys: float | None  # κ of its own state, over all units
    predicted: float | None  # seconds per row
    measured: float | None  # seconds per row

    def status(self) -> dict[str, Any]:
        """Return the form that /v1/status shows."""
        return {
            "order": list(self.others),
            "share": round(self.share, 3),
            "matchRate": list(map(_rounded, self.rate)),
            "matchesPerHit": list(map(_rounded, self.per_hit)),
            "keys": self.keys and round(self.keys),
            "predictedSeconds": self.predicted,
            "measuredSeconds": self.measured,
        }


def choosers(pipeline: Pipeline) -> tuple[Chooser, ...]:
    """Return the joins of a query that have probe orders."""
    found = list[Chooser]()
    for number, stage in enumerate(pipeline.stages):
        if isinstance(stage, Stage):
            choices = enumerate(_choices(stage.tree, [plan.alias for plan in stage.inputs]))
            found += [Chooser(number, place, pipeline.units, inputs) for place, inputs in choices]
        elif isinstance(stage, PathStage):
            names = tuple(stage.inputs[home].alias for home in stage.homes)
            found.append(Chooser(number, 0, pipeline.units, names, stage))
    return tuple(found)


def asks(joins: Iterable[Chooser], known: Mapping[int, UnitJoins]) -> list[Asks]:
    """Return the probes of each input of each join, without the joins that no unit has reported yet."""
    return [
        _of(join, at, said)
        for join in joins
        if (said := join.reported(known))
        for at in range(len(join.inputs))
    ]


def spoken(joins: Iterable[Chooser], known: Mapping[int, UnitJoins]) -> str:
    """Return all orders in short: a > b > c, b > a > c."""
    return ", ".join(" > ".join((a.name, *a.others)) for a in asks(joins, known))


def _choices(tree: Join | Leaf, aliases: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """Yield the inputs of each inner join of three or more, children first."""
    if isinstance(tree, Leaf):
        return
    for child in tree.inputs:
        yield from _choices(child, aliases)
    if tree.kind == "inner" and len(tree.inputs) > 2:
        yield tuple("+".join(aliases[i] for i in _leaves(child)) for child in tree.inputs)


def _of(join: Chooser, at: int, units: Sequence[Mapping[str, Any]]) -> Asks:
    every = [unit["orders"][at] for unit in units]
    (order, count), *_ = Counter(map(tuple, every)).most_common()
    rate, per_hit, keys = ([unit["known"][n] for unit in units] for n in range(3))
    state, pairs = join.state(at), [*zip(join.askers(at, order), order, strict=True)]
    own = [] if state is None else [trends[state] for trends in keys]
    places = [[one.index(o) + 1 for one in every if o in one] for o in order]
    return Asks(
        join.inputs[at],
        tuple(join.asked[other] for other in order),
        count / len(units),
        tuple(sum(found) / len(found) for found in places),
        tuple(_mean([_level(table[by][o]) for table in rate]) for by, o in pairs),
        tuple(_mean([_level(table[by][o]) for table in per_hit]) for by, o in pairs),
        sum(trend[0] for trend in own if trend) if any(own) else None,
        _mean([unit["predicted"][at] for unit in units]),
        _mean([unit["measured"][at] for unit in units]),
    )


def _leaves(node: Join | Leaf) -> Iterable[int]:
    if isinstance(node, Leaf):
        yield node.input
    else:
        for child in node.inputs:
            yield from _leaves(child)


def _level(trend: Sequence[float] | None) -> float | None:
    return trend[0] if trend else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
