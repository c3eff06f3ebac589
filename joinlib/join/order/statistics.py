"""Statistics of the probes of one operator, carried from cycle to cycle (dpPick, section 4.3).

What was never observed is guessed from the state itself: as many of the asker's keys are found as the other
side can have, and each has as many rows as one there has on average.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from joinlib.join.order.smoothing import DAMPING, LINEAR, Trend, followed, newest
from joinlib.join.order.watch import ProbeCounts
from joinlib.path.cost import PathCosts, SearchedRun, search_cost
from joinlib.path.graph import Arrangement

Table = tuple[tuple[Trend | None, ...], ...]
Ratios = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class StateSize:
    """The size of what a probe of one arrangement searches."""

    runs: tuple[SearchedRun, ...]
    rows: int

    @property
    def keys(self) -> float:
        """κ; a key in two runs counts twice, because both are searched."""
        return sum(run.keys for run in self.runs)

    def weight(self, rate: float, keys: float | None = None) -> float:
        """Return f(κ), equations 5 and 6, for an asker whose match rate is `rate`; `keys` is κ if not today's."""
        if keys is None or not self.keys:
            return search_cost(self.runs, rate)
        grown = keys / self.keys
        return search_cost([replace(run, keys=run.keys * grown) for run in self.runs], rate)


@dataclass(frozen=True)
class Statistics:
    """Smoothed figures; None where nothing was observed.

    Tables have shape (inputs, arrangements): by the input that asks, then by what is asked.
    """

    rate: Table  # γ, equation 9
    per_hit: Table  # μ, equation 10
    keys: tuple[Trend | None, ...]  # κ, equation 11
    query_seconds: float | None = None  # αq: seconds per query, divided by f(κ)
    match_seconds: float | None = None  # αm: seconds per tuple found

    def after(self, seen: ProbeCounts, sizes: Sequence[StateSize], history: int | None) -> "Statistics":
        """Return the statistics one cycle later.

        seen: what was counted in the cycle. sizes: the sizes of the arrangements at its end. history: cycles
        over which figures are smoothed; None: those of the last cycle count.
        """
        each = len(sizes)
        asked = [
            (queries, sizes[at % each].weight(hits / queries))
            for at, (queries, hits) in enumerate(zip(seen.asked, seen.hit, strict=True))
            if queries
        ]
        queries = sum(count * weight for count, weight in asked)
        return Statistics(
            _after(self.rate, seen.hit, seen.asked, DAMPING, history),
            _after(self.per_hit, seen.found, seen.hit, LINEAR, history),
            _line(self.keys, [size.keys for size in sizes], LINEAR, history),
            _settled(self.query_seconds, _share(seen.asking, queries), history),
            _settled(self.match_seconds, _share(sum(seen.spent) - seen.asking, sum(seen.found)), history),
        )

    def model(
        self, sizes: Sequence[StateSize], arrangements: Sequence[Arrangement], exchange: float = 0.0
    ) -> PathCosts:
        """Return the costs in the next cycle. sizes: of the arrangements now. exchange: αx, seconds."""
        seconds, each = self.query_seconds or 1.0, range(len(sizes))
        rates, per_hit = self._rates(sizes, arrangements), self._per_hit(sizes)
        ahead = [_ahead(trend, size.keys, LINEAR) for trend, size in zip(self.keys, sizes, strict=True)]
        query = tuple(
            tuple(seconds * sizes[at].weight(line[at], max(ahead[at], 0.0)) for at in each) for line in rates
        )
        return PathCosts(query, self.match_seconds or seconds, rates, per_hit, exchange)

    def _rates(self, sizes: Sequence[StateSize], arrangements: Sequence[Arrangement]) -> Ratios:
        own = {
            arrangement: max(size.keys, 1.0) for arrangement, size in zip(arrangements, sizes, strict=True)
        }

        def guessed(asker: int, asked: int) -> float:
            mine = own.get(Arrangement(asker, arrangements[asked].key))
            return 1.0 if mine is None else sizes[asked].keys / mine  # None: it is not stored by this key

        return tuple(
            tuple(min(max(_ahead(trend, guessed(l, r), DAMPING), 0.0), 1.0) for r, trend in enumerate(line))
            for l, line in enumerate(self.rate)  # noqa: E741 - as in the paper
        )

    def _per_hit(self, sizes: Sequence[StateSize]) -> Ratios:
        rows = [size.rows / max(size.keys, 1.0) for size in sizes]
        return tuple(
            tuple(max(_ahead(trend, rows[r], LINEAR), 1.0) for r, trend in enumerate(line))
            for line in self.per_hit
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


def nothing(inputs: int, arrangements: int) -> Statistics:
    """Return the statistics before the first cycle."""
    none = (None,) * arrangements
    return Statistics((none,) * inputs, (none,) * inputs, none)


def short(value: float | None) -> float | None:
    """Round to four digits, to keep manifests small."""
    return None if value is None else float(f"{value:.4g}")


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _settled(before: float | None, now: float | None, history: int | None) -> float | None:
    if before is None or now is None or history is None:
        return before if now is None else now
    return (1 - newest(history)) * before + newest(history) * now


def _ahead(trend: Trend | None, unseen: float, damping: float) -> float:
    return unseen if trend is None else trend.ahead(damping)


def _line(
    before: tuple[Trend | None, ...], now: list[Any], damping: float, history: int | None
) -> tuple[Trend | None, ...]:
    return tuple(followed(t, x, damping, history) for t, x in zip(before, now, strict=True))


def _after(before: Table, parts: list[int], wholes: list[int], damping: float, history: int | None) -> Table:
    """Return a table of ratios, one cycle later."""
    each, shares = len(before[0]), [*map(_share, parts, wholes)]
    return tuple(
        _line(line, shares[at * each : (at + 1) * each], damping, history) for at, line in enumerate(before)
    )


def _pair(trend: Trend | None) -> list[float | None] | None:
    return None if trend is None else [short(trend.level), short(trend.slope)]


def _trend(raw: list[float] | None) -> Trend | None:
    return None if raw is None else Trend(*raw)
