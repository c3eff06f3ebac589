"""How fast do rows come, and how fast are they read while a batch runs? Pure: the clock is passed in.

    arrival      growth of the rows that are known, read or not, over time
    true rate    rows of the last batches over the seconds that they took, without the pauses between them

The true rate is what the executors can do only as long as rows wait: batches that take all there is are small,
and a small batch takes about as long as one of a few times its rows.

Law: what is not known is None: the arrival until two moments are known, the true rate until the executors that
are there have done a batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

WINDOW_S = 60.0


@dataclass(frozen=True)
class Lap:
    """A batch, as its offsets tell of it."""

    at: float  # when its end was decided, in seconds since 1970
    seconds: float  # until it was committed
    read: Mapping[str, int]  # rows before its end, by source
    waiting: Mapping[str, int]  # rows behind its end, by source
    rows: int | None  # that it read, of all sources; None: not known
    executors: int = 0  # that worked when it was done

    @property
    def known(self) -> Mapping[str, int]:
        """Rows that are read, or wait to be, by source."""
        return {name: rows + self.waiting[name] for name, rows in self.read.items() if name in self.waiting}


@dataclass(frozen=True)
class Pace:
    """The batches of the last minute, and at least the last one."""

    laps: tuple[Lap, ...] = ()  # the newest last
    until: float = 0.0  # nothing has come since the newest up to then, in seconds since 1970

    def after(self, lap: Lap) -> "Pace":
        """Return the pace after one more batch."""
        return Pace((*self._recent(lap.at), lap), lap.at)

    def idle(self, now: float) -> "Pace":
        """Return the pace if no rows wait now."""
        return replace(self, laps=self._recent(now) or self.laps[-1:], until=max(self.until, now))

    def arrivals(self) -> dict[str, float]:
        """Return the rows that come in a second, by source; a source without figures is left out."""
        found = {}
        for name, rows in (self.laps[-1].known if self.laps else {}).items():
            first = next(lap for lap in self.laps if name in lap.known)  # the first batch of a run knows none
            if (seconds := self.until - first.at) > 0:
                found[name] = max(0, rows - first.known[name]) / seconds
        return found

    def true_rate(self, executors: int) -> float | None:
        """Return the rows that these executors read in a second of a batch."""
        if not self.laps or self.laps[-1].executors != executors:
            return None
        done = [(lap.rows, lap.seconds) for lap in self.laps if lap.executors == executors and lap.rows]
        seconds = sum(seconds for _, seconds in done)
        return sum(rows for rows, _ in done) / seconds if seconds > 0 else None

    def _recent(self, now: float) -> tuple[Lap, ...]:
        return tuple(lap for lap in self.laps if now - lap.at <= WINDOW_S) or self.laps[-1:]


def lap(
    at: float, seconds: float, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
) -> Lap:
    """Return a batch by the figures of its first and last offset, which StreamInput.lag has given."""
    read = {name: figures["read"] for name, figures in end.items() if "read" in figures}
    before = {name: start[name]["read"] for name in read if "read" in start.get(name, {})}
    rows = sum(read.values()) - sum(before.values()) if read and before.keys() == read.keys() else None
    return Lap(at, seconds, read, {name: figures["rows"] for name, figures in end.items()}, rows)
