"""The state of a driver as it reports it at /v1/status: a pure view of one moment.

`exported` does /metrics.

A figure that is not known is null, or absent, never zero: a consumer that scales by it must not mistake a
missing figure for an empty state. Sums are over this run of the driver, as Prometheus expects of counters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from jobs.figures import Figures, Took
from jobs.pace import Pace
from jobs.page.rows import LastRows
from jobs.probes import Asks, Chooser, asks
from joinlib.lookup.used import Used
from joinlib.metric.heap import Heap
from joinlib.model.time import ALWAYS, NEVER

Phase = Literal["Waiting", "Starting", "Running", "Stopping", "Failed"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FEW = 10  # rows of state a unit, on average: of fewer, how they lie is chance


@dataclass(frozen=True)
class Moment:
    """All that the driver knows now."""

    sources: tuple[str, ...]  # the name in the spec of each input of the plan
    phase: Phase = "Starting"
    message: str = ""
    figures: Figures | None = None
    took: Took = field(default_factory=Took)  # the last batch that was committed
    steps: Mapping[str, float] = field(default_factory=dict)  # seconds of Spark's steps, in this run
    pace: Pace = field(default_factory=Pace)
    done_at: float | None = None  # when this run's last batch was done, in seconds since 1970
    lag: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by source
    probes: tuple[Chooser, ...] = ()
    loads: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by table that is kept whole
    route_skew: Mapping[str, float] = field(default_factory=dict)  # degree of skew: by hashes, by the rule
    hot: Mapping[str, float] = field(default_factory=dict)  # hot keys' share, by source that spreads them
    hashed: frozenset[str] = frozenset()  # sources whose keys each have one unit, at least at first
    there: tuple[str, ...] = ()  # executors that work
    spare: int = 0  # executors that take tasks, but get no units
    leaving: int = 0  # executors that finish their tasks before they leave
    wanted: int = 0
    refused: str = ""  # why the API server makes no pod of an executor
    heap: Heap | None = None  # of the driver's JVM
    heaps: Mapping[str, Heap] = field(default_factory=dict)  # of executors' JVMs, some of which may have left
    partitions: int | None = None  # tasks that join at the same time
    budget: int | None = None  # bytes of state that one executor may hold
    stored: frozenset[int] = frozenset()  # units that had state before this run
    config_hash: str | None = None
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # in a registry, by source
    origin: tuple[str, int] | None = None  # of a fork: the other job, and the batch behind which it began
    last: Mapping[str, LastRows] = field(default_factory=dict)  # by output, where the spec asks for them

    @property
    def ready(self) -> int:
        """The number of executors that work."""
        return len(self.there)

    @property
    def known(self) -> bool:
        """Whether every unit with state has reported its size."""
        return self.figures is not None and self.stored <= self.figures.receipts.keys()

    @property
    def mapped_bytes(self) -> int:
        """Bytes that executors map: live segments and their indexes."""
        return self.figures.mapped_bytes if self.figures else 0

    @property
    def memory_load(self) -> float | None:
        """Bytes in memory over what the ready executors may hold; None if not known."""
        if not self.known or not self.budget or not self.ready:
            return None
        return (self.figures.held_bytes if self.figures else 0) / (self.ready * self.budget)

    def skew(self, units: int) -> float | None:
        """Return the rows of the fullest unit over the mean of its stage's units, less 1: 0 is even.

        Stages with hardly any rows do not count.
        """
        if self.figures is None or not self.known:
            return None
        stages: dict[int, list[int]] = {}
        for unit, receipt in self.figures.receipts.items():
            stages.setdefault(unit // units, []).append(receipt.state_rows)
        full = [rows for rows in stages.values() if sum(rows) >= _FEW * units]
        return max((max(rows) * units / sum(rows) - 1 for rows in full), default=None)

    def by_source(self, figures: tuple[int, ...]) -> dict[str, int]:
        """Return figures by the names of the spec; a source that is read twice counts twice."""
        sums = dict.fromkeys(self.sources, 0)
        for name, value in zip(self.sources, figures, strict=False):
            sums[name] += value
        return sums

    @property
    def used(self) -> Mapping[str, Used]:
        """Counts of each table's lookups and the size of its cache; empty before the first batch."""
        return self.figures.tables if self.figures else {}

    @property
    def asks(self) -> list[Asks]:
        """The statistics of probes, for each input whose rows probe others."""
        return asks(self.probes, self.figures.probes) if self.figures else []

    @property
    def lag_rows(self) -> dict[str, int]:
        """Rows that are known but not read, by source; sources without a figure are left out."""
        return {name: lag["rows"] for name, lag in self.lag.items() if lag.get("rows") is not None}

    @property
    def watermark(self) -> datetime | None:
        """The watermark of the unit that is furthest behind, if there is one."""
        time = self.figures.watermark if self.figures else None
        if time is None or time in (NEVER, ALWAYS):
            return None
        try:
            return _EPOCH + timedelta(microseconds=time)
        except OverflowError:
            return None


def status(moment: Moment, units: int, now: float) -> dict[str, Any]:
    """Return the response of /v1/status."""
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
        "stateBytes": moment.mapped_bytes,
        "memoryLoad": _rounded(moment.memory_load),
        "skew": _rounded(moment.skew(units)),
        "executors": {
            "ready": moment.ready,
            "wanted": moment.wanted,
            "leaving": moment.leaving,
            "spare": moment.spare,
            "refused": moment.refused or None,
        },
        "partitions": moment.partitions,
        "watermark": watermark.isoformat() if watermark else None,
        "late": moment.by_source(figures.late) if figures else {},
        "deleted": moment.by_source(figures.deleted) if figures else {},
        "unknownDeletes": moment.by_source(figures.unknown) if figures else {},
        "bad": moment.by_source(figures.bad) if figures else {},
        "deadLetters": _by_name(figures.dead) if figures else {},
        "tables": {name: _table(used, moment.loads.get(name)) for name, used in moment.used.items()},
        "probeOrders": {a.name: a.status() for a in moment.asks},
        "routeSkew": {name: round(ds, 4) for name, ds in moment.route_skew.items()},
        "configHash": moment.config_hash,
        "columns": moment.columns,
    }


def _by_name(dead: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Return dead letters by input or output, and by reason."""
    found: dict[str, dict[str, int]] = {}
    for (name, reason), count in dead.items():
        found.setdefault(name, {})[reason] = count
    return found


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
