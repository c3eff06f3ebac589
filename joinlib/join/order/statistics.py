"""What is known of the probes of one operator, from cycle to cycle (dpPick, section 4.3)."""

from dataclasses import dataclass
from typing import Any

from joinlib.join.order.cost import Model, hashed
from joinlib.join.order.smoothing import DAMPING, LINEAR, Trend, followed
from joinlib.join.order.watch import Watch

Table = tuple[tuple[Trend | None, ...], ...]
_NEW = 0.5  # of α, the part of the cycle that just ended


@dataclass(frozen=True)
class Size:
    """What an input's state looks like to those that ask it."""

    keys: int  # κ; a key that is in two runs counts twice: both are searched
    slots: int  # m
    runs: int

    def weight(self, keys: float) -> float:
        """f(κ), equation 5."""
        return hashed(keys, self.slots, self.runs)


@dataclass(frozen=True)
class Statistics:
    """Smoothed figures; None: nothing was seen. Tables have shape (n, n): the input whose rows ask, the one that is asked."""

    rate: Table  # γ, equation 9
    per_hit: Table  # μ, equation 10
    keys: tuple[Trend | None, ...]  # κ, equation 11
    query_seconds: float | None = None  # αq: of a query, over f(κ)
    match_seconds: float | None = None  # αm: of a tuple that was found

    def after(self, seen: Watch, sizes: list[Size], smooth: bool = True) -> "Statistics":
        """One cycle later, in which `seen` was counted and at whose end inputs had these sizes."""
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

    def model(self, sizes: list[Size]) -> Model:
        """Costs in the next cycle. A probe that was never made is taken to find one partner each time."""
        query, weights = self.query_seconds or 1.0, zip(sizes, self.keys, strict=True)
        return Model(
            tuple(query * size.weight(max(_ahead(keys, 0.0, LINEAR), 0.0)) for size, keys in weights),
            self.match_seconds or query,
            tuple(tuple(min(max(_ahead(t, 1.0, DAMPING), 0.0), 1.0) for t in line) for line in self.rate),
            tuple(tuple(max(_ahead(t, 1.0, LINEAR), 1.0) for t in line) for line in self.per_hit),
        )

    def plain(self) -> list[Any]:
        """As JSON has it, and short."""
        return [
            [[_pair(t) for t in line] for line in self.rate],
            [[_pair(t) for t in line] for line in self.per_hit],
            [_pair(t) for t in self.keys],
            short(self.query_seconds),
            short(self.match_seconds),
        ]

    @classmethod
    def read(cls, raw: list[Any]) -> "Statistics":
        """Inverse of `plain`."""
        rate, per_hit, keys, query, match = raw
        tables = [tuple(tuple(map(_trend, line)) for line in table) for table in (rate, per_hit)]
        return cls(tables[0], tables[1], tuple(map(_trend, keys)), query, match)


def nothing(inputs: int) -> Statistics:
    """Before the first cycle."""
    none = (None,) * inputs
    return Statistics((none,) * inputs, (none,) * inputs, none)


def short(value: float | None) -> float | None:
    """To four digits: manifests stay small."""
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
    """A table of shares, one cycle later."""
    n, shares = len(before), [*map(_share, parts, wholes)]
    return tuple(_line(line, shares[at * n : at * n + n], damping, smooth) for at, line in enumerate(before))


def _pair(trend: Trend | None) -> list[float | None] | None:
    return None if trend is None else [short(trend.level), short(trend.slope)]


def _trend(raw: list[float] | None) -> Trend | None:
    return None if raw is None else Trend(*raw)
