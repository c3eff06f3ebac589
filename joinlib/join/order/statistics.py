"""Statistics of the probes of one operator, carried from cycle to cycle (dpPick, section 4.3)."""

from dataclasses import dataclass
from typing import Any

from joinlib.join.order.cost import CostModel, hashed
from joinlib.join.order.smoothing import DAMPING, LINEAR, Trend, followed
from joinlib.join.order.watch import Watch

Table = tuple[tuple[Trend | None, ...], ...]
_NEW = 0.5  # weight in α of the cycle that just ended


@dataclass(frozen=True)
class StateSize:
    """The size of an input's state, as far as it decides the cost of probing it."""

    keys: int  # κ; a key in two runs counts twice, because both are searched
    slots: int  # m
    runs: int

    def weight(self, keys: float) -> float:
        """Return f(κ), equation 5."""
        return hashed(keys, self.slots, self.runs)


@dataclass(frozen=True)
class Statistics:
    """Smoothed figures; None where nothing was observed.

    Tables have shape (n, n): by the input whose rows probe, then by the input that is probed.
    """

    rate: Table  # γ, equation 9
    per_hit: Table  # μ, equation 10
    keys: tuple[Trend | None, ...]  # κ, equation 11
    query_seconds: float | None = None  # αq: seconds per query, divided by f(κ)
    match_seconds: float | None = None  # αm: seconds per tuple found

    def after(self, seen: Watch, sizes: list[StateSize], smooth: bool = True) -> "Statistics":
        """Return the statistics one cycle later.

        seen: the counters of the cycle. sizes: the sizes of the inputs at its end.
        """
        n = len(sizes)
        weights = [size.weight(size.keys) for size in sizes]
        queries = sum(asked * weights[at % n] for at, asked in enumerate(seen.asked))
        return Statistics(
            _after(self.rate, seen.hit, seen.asked, DAMPING, smooth),
            _after(self.per_hit, seen.found, seen.hit, LINEAR, smooth),
            _line(self.keys, [size.keys for size in sizes], LINEAR, smooth),
            _settled(self.query_seconds, _share(seen.asking, queries)),
            _settled(self.match_seconds, _share(sum(seen.spent) - seen.asking, sum(seen.found))),
        )

    def model(self, sizes: list[StateSize]) -> CostModel:
        """Return the costs in the next cycle.

        A probe that was never made is assumed to find one partner each time.
        """
        query, weights = self.query_seconds or 1.0, zip(sizes, self.keys, strict=True)
        return CostModel(
            tuple(query * size.weight(max(_ahead(keys, 0.0, LINEAR), 0.0)) for size, keys in weights),
            self.match_seconds or query,
            tuple(tuple(min(max(_ahead(t, 1.0, DAMPING), 0.0), 1.0) for t in line) for line in self.rate),
            tuple(tuple(max(_ahead(t, 1.0, LINEAR), 1.0) for t in line) for line in self.per_hit),
        )

    def plain(self) -> list[Any]:
        """Return the statistics in JSON's types, rounded."""
        return [
            [[_pair(t) for t in line] for line in self.rate],
            [[_pair(t) for t in line] for line in self.per_hit],
            [_pair(t) for t in self.keys],
            short(self.query_seconds),
            short(self.match_seconds),
        ]

    @classmethod
    def read(cls, raw: list[Any]) -> "Statistics":
        """Return the inverse of `plain`."""
        rate, per_hit, keys, query, match = raw
        tables = [tuple(tuple(map(_trend, line)) for line in table) for table in (rate, per_hit)]
        return cls(tables[0], tables[1], tuple(map(_trend, keys)), query, match)


def nothing(inputs: int) -> Statistics:
    """Return the statistics before the first cycle."""
    none = (None,) * inputs
    return Statistics((none,) * inputs, (none,) * inputs, none)


def short(value: float | None) -> float | None:
    """Round to four digits, to keep manifests small."""
    return None if value is None else float(f"{value:.4g}")


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _settled(before: float | None, now: float | None) -> float | None:
    if before is None or now is None:
        return before if now is None else now
    return (1 - _NEW) * before + _NEW * now


def _ahead(trend: Trend | None, unseen: float, damping: float) -> float:
    return unseen if trend is None else trend.ahead(damping)


def _line(
    before: tuple[Trend | None, ...], now: list[Any], damping: float, smooth: bool
) -> tuple[Trend | None, ...]:
    return tuple(followed(t, x, damping, smooth) for t, x in zip(before, now, strict=True))


def _after(before: Table, parts: list[int], wholes: list[int], damping: float, smooth: bool) -> Table:
    """Return a table of ratios, one cycle later."""
    n, shares = len(before), [*map(_share, parts, wholes)]
    return tuple(_line(line, shares[at * n : at * n + n], damping, smooth) for at, line in enumerate(before))


def _pair(trend: Trend | None) -> list[float | None] | None:
    return None if trend is None else [short(trend.level), short(trend.slope)]


def _trend(raw: list[float] | None) -> Trend | None:
    return None if raw is None else Trend(*raw)
