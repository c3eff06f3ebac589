"""In which order do rows look for partners, and what does it cost? Over all units; pure.

Each unit has orders of its own: the commonest is shown, figures are means of the units that have some, keys are sums.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joinlib.join.config import Join, Leaf
from joinlib.join.stage import Stage

Known = Sequence[Mapping[str, Any]]  # of one unit: the figures of each join, as its receipt has them


@dataclass(frozen=True)
class Asks:
    """The probes of one input's rows; `others` are named in the commonest order, figures stand beside them."""

    name: str
    others: tuple[str, ...]
    share: float  # of units that have this order
    position: tuple[float, ...]  # mean, 1 is first
    rate: tuple[float | None, ...]  # γ
    per_hit: tuple[float | None, ...]  # μ
    keys: float | None  # κ of its own state, over all units
    predicted: float | None  # seconds a row
    measured: float | None

    def status(self) -> dict[str, Any]:
        """As /v1/status has it."""
        return {
            "order": list(self.others),
            "share": round(self.share, 3),
            "matchRate": list(map(_rounded, self.rate)),
            "matchesPerHit": list(map(_rounded, self.per_hit)),
            "keys": self.keys and round(self.keys),
            "predictedSeconds": self.predicted,
            "measuredSeconds": self.measured,
        }


def probe_names(stage: Stage) -> tuple[tuple[str, ...], ...]:
    """The inputs of each inner join of three or more, children first: as units keep their orders."""
    aliases = [plan.alias for plan in stage.inputs]

    def walk(join: Join) -> Iterable[tuple[str, ...]]:
        for child in join.inputs:
            if isinstance(child, Join):
                yield from walk(child)
        if join.kind == "inner" and len(join.inputs) > 2:
            yield tuple("+".join(aliases[i] for i in _leaves(child)) for child in join.inputs)

    return tuple(walk(stage.tree)) if isinstance(stage.tree, Join) else ()


def asks(names: Sequence[Sequence[str]], units: Collection[Known]) -> list[Asks]:
    """Of each input of each join; nothing of those of which no unit has said anything."""
    return [
        _of(inputs, at, [unit[join] for unit in units])
        for join, inputs in enumerate(names)
        for at in range(len(inputs))
        if units
    ]


def spoken(names: Sequence[Sequence[str]], units: Collection[Known]) -> str:
    """In short: a > b > c, b > a > c."""
    return ", ".join(" > ".join((a.name, *a.others)) for a in asks(names, units))


def _of(inputs: Sequence[str], at: int, units: Sequence[Mapping[str, Any]]) -> Asks:
    (order, count), *_ = Counter(tuple(unit["orders"][at]) for unit in units).most_common()
    rate, per_hit, keys = ([unit["known"][n] for unit in units] for n in range(3))
    own = [trends[at] for trends in keys]
    return Asks(
        inputs[at],
        tuple(inputs[other] for other in order),
        count / len(units),
        tuple(sum(unit["orders"][at].index(o) + 1 for unit in units) / len(units) for o in order),
        tuple(_mean([_level(table[at][o]) for table in rate]) for o in order),
        tuple(_mean([_level(table[at][o]) for table in per_hit]) for o in order),
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
