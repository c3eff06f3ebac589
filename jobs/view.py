"""What a driver knows of itself, and says at /v1/status. A pure view of one moment; `jobs.exported` makes /metrics of it.

A figure that is not known is null, or absent, never zero: whoever scales by it must not take silence for emptiness.
Sums are over this run of the driver, as Prometheus wants its counters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from jobs.figures import Figures, Took
from jobs.probes import Asks, Chooser, asks
from joinlib.lookup.used import Used
from joinlib.state.manifest import ALWAYS, NEVER

Phase = Literal["Waiting", "Starting", "Running", "Stopping", "Failed"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Moment:
    """All that the driver knows now."""

    sources: tuple[str, ...]  # of each input of the plan, the name in the spec
    phase: Phase = "Starting"
    message: str = ""
    figures: Figures | None = None
    took: Took = field(default_factory=Took)  # the last batch that was committed
    steps: Mapping[str, float] = field(default_factory=dict)  # seconds of Spark's steps, in this run
    done_at: float | None = None  # when the last batch was done, of this run; seconds since 1970
    lag: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # of each source
    tables: tuple[str, ...] = ()  # of each lookup of the plan, its name in the SQL
    probes: tuple[Chooser, ...] = ()
    loads: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of tables that are kept whole
    route_skew: Mapping[str, float] = field(default_factory=dict)  # DS by hashes alone, and by the rule
    hot: Mapping[str, float] = field(default_factory=dict)  # hot keys' share of sources that spread them
    hashed: frozenset[str] = frozenset()  # sources of which each key has one unit, at first at least
    there: tuple[str, ...] = ()  # executors that can take tasks
    leaving: int = 0  # executors that finish what they do and go
    wanted: int = 0
    partitions: int | None = None  # of a batch: tasks that join at once
    budget: int | None = None  # bytes of state that one executor may hold
    stored: frozenset[int] = frozenset()  # units that had state before this run
    config_hash: str | None = None

    @property
    def ready(self) -> int:
        """Executors that can take tasks."""
        return len(self.there)

    @property
    def known(self) -> bool:
        """Has every unit that has state said how much?"""
        return self.figures is not None and self.stored <= self.figures.receipts.keys()

    @property
    def held_bytes(self) -> int:
        """Live segments and their indexes: what executors map."""
        return self.figures.held_bytes if self.figures else 0

    @property
    def memory_load(self) -> float | None:
        """Held bytes over what the executors that are there may hold."""
        if not self.known or not self.budget or not self.ready:
            return None
        return self.held_bytes / (self.ready * self.budget)

    def skew(self, units: int) -> float | None:
        """Rows of the fullest unit over those of the mean one of its stage, less 1: 0 is even."""
        if self.figures is None or not self.known or not self.figures.state_rows:
            return None
        stages: dict[int, list[int]] = {}
        for unit, receipt in self.figures.receipts.items():
            stages.setdefault(unit // units, []).append(receipt.state_rows)
        return max(max(rows) * units / sum(rows) - 1 for rows in stages.values() if any(rows))

    def by_source(self, figures: tuple[int, ...]) -> dict[str, int]:
        """Figures by the names of the spec; a source that is read twice counts twice."""
        sums = dict.fromkeys(self.sources, 0)
        for name, value in zip(self.sources, figures, strict=False):
            sums[name] += value
        return sums

    @property
    def used(self) -> dict[str, Used]:
        """What lookups of each table did, and what is kept; nothing before the first batch."""
        return dict(zip(self.tables, self.figures.tables if self.figures else (), strict=False))

    @property
    def asks(self) -> list[Asks]:
        """What is known of probes, for each input whose rows ask."""
        return asks(self.probes, self.figures.probes) if self.figures else []

    @property
    def lag_rows(self) -> dict[str, int]:
        """Rows that are known but not read, by source; those of which nothing is known are left out."""
        return {name: lag["rows"] for name, lag in self.lag.items() if lag.get("rows") is not None}

    @property
    def watermark(self) -> datetime | None:
        """Of the unit that is furthest behind."""
        time = self.figures.watermark if self.figures else None
        if time is None or time in (NEVER, ALWAYS):
            return None
        try:
            return _EPOCH + timedelta(microseconds=time)
        except OverflowError:
            return None


def status(moment: Moment, units: int, now: float) -> dict[str, Any]:
    """The answer of /v1/status."""
    figures, committed = moment.figures, moment.took.batch >= 0
    rate = sum(figures.rates(now)[0]) if figures else 0.0
    watermark = moment.watermark
    return {
        "phase": moment.phase,
        "message": moment.message,
        "batch": moment.took.batch if committed else None,
        "batchSeconds": moment.took.seconds if committed else None,
        "rowsIn": sum(figures.rows_in) if figures else 0,
        "rowsOut": figures.rows_out if figures else 0,
        "rate": round(rate, 1),
        "lag": moment.lag_rows,
        "stateRows": figures.state_rows if figures else 0,
        "stateBytes": moment.held_bytes,
        "memoryLoad": _rounded(moment.memory_load),
        "skew": _rounded(moment.skew(units)),
        "executors": {"ready": moment.ready, "wanted": moment.wanted, "leaving": moment.leaving},
        "partitions": moment.partitions,
        "watermark": watermark.isoformat() if watermark else None,
        "late": moment.by_source(figures.late) if figures else {},
        "bad": moment.by_source(figures.bad) if figures else {},
        "tables": {name: _table(used, moment.loads.get(name)) for name, used in moment.used.items()},
        "probeOrders": {a.name: a.status() for a in moment.asks},
        "routeSkew": {name: round(ds, 4) for name, ds in moment.route_skew.items()},
        "configHash": moment.config_hash,
    }


def _table(used: Used, loads: Mapping[str, float] | None) -> dict[str, Any]:
    return {
        "hits": used.hits,
        "misses": used.misses,
        "expired": used.expired,
        "queries": used.queries,
        "rows": used.rows,
        "bytes": used.bytes,
        "budget": used.budget,
        "version": used.version,
        "loadSeconds": round(loads["seconds"], 3) if loads else None,
        "keptLoads": loads["kept"] if loads else None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
