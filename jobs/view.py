"""What a driver says of itself: the JSON of /v1/status and the figures of /metrics. Pure views of one moment.

A figure that is not known is null, or absent, never zero: whoever scales by it must not take silence for emptiness.
Sums are over this run of the driver, as Prometheus wants its counters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from jobs.figures import Figures
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
    took: tuple[int, float] = (-1, 0.0)  # the last batch that was committed, and its seconds
    lag: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # of each source
    ready: int = 0  # executors
    wanted: int = 0
    budget: int | None = None  # bytes of state that one executor may hold
    stored: frozenset[int] = frozenset()  # units that had state before this run
    config_hash: str | None = None

    @property
    def known(self) -> bool:
        """Has every unit that has state said how much?"""
        return self.figures is not None and self.stored <= self.figures.receipts.keys()

    @property
    def held_bytes(self) -> int:
        """Live segments and their indexes: what executors map."""
        units = self.figures.receipts.values() if self.figures else ()
        return sum(r.state_bytes + r.index_bytes for r in units)

    @property
    def memory_load(self) -> float | None:
        """Held bytes over what the executors that are there may hold."""
        if not self.known or not self.budget or not self.ready:
            return None
        return self.held_bytes / (self.ready * self.budget)

    def skew(self, units: int) -> float | None:
        """Rows of the fullest unit over those of the mean one, less 1: 0 is even."""
        if self.figures is None or not self.known or not self.figures.state_rows:
            return None
        fullest = max(r.state_rows for r in self.figures.receipts.values())
        return fullest * units / self.figures.state_rows - 1

    def by_source(self, figures: tuple[int, ...]) -> dict[str, int]:
        """Figures by the names of the spec; a source that is read twice counts twice."""
        sums = dict.fromkeys(self.sources, 0)
        for name, value in zip(self.sources, figures, strict=False):
            sums[name] += value
        return sums

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
    figures, committed = moment.figures, moment.took[0] >= 0
    rate = sum(figures.rates(now)[0]) if figures else 0.0
    watermark = moment.watermark
    return {
        "phase": moment.phase,
        "message": moment.message,
        "batch": moment.took[0] if committed else None,
        "batchSeconds": moment.took[1] if committed else None,
        "rowsIn": sum(figures.rows_in) if figures else 0,
        "rowsOut": figures.rows_out if figures else 0,
        "rate": round(rate, 1),
        "lag": moment.lag_rows,
        "stateRows": figures.state_rows if figures else 0,
        "stateBytes": moment.held_bytes,
        "memoryLoad": _rounded(moment.memory_load),
        "skew": _rounded(moment.skew(units)),
        "executors": {"ready": moment.ready, "wanted": moment.wanted},
        "watermark": watermark.isoformat() if watermark else None,
        "late": moment.by_source(figures.late) if figures else {},
        "bad": moment.by_source(figures.bad) if figures else {},
        "configHash": moment.config_hash,
    }


def metrics(moment: Moment, units: int) -> Iterator[Metric]:
    """The families of /metrics. Labels: names of the spec, and the two states of an executor."""
    yield from _counters(moment)
    yield from _gauges(moment, units)
    lag = GaugeMetricFamily("streamjoin_lag_rows", "Rows known but not read yet", labels=["input"])
    for name, rows in moment.lag_rows.items():
        lag.add_metric([name], rows)
    yield lag
    executors = GaugeMetricFamily(
        "streamjoin_executors", "Executors that are there, and wanted", labels=["state"]
    )
    executors.add_metric(["ready"], moment.ready)
    executors.add_metric(["wanted"], moment.wanted)
    yield executors


def _counters(moment: Moment) -> Iterator[Metric]:
    figures, zeros = moment.figures, (0,) * len(moment.sources)
    batches = CounterMetricFamily("streamjoin_batches", "Batches done")
    batches.add_metric([], figures.batches if figures else 0)
    yield batches
    rows_out = CounterMetricFamily("streamjoin_rows_out", "Result rows")
    rows_out.add_metric([], figures.rows_out if figures else 0)
    yield rows_out
    rows_in = CounterMetricFamily(
        "streamjoin_rows_in", "Rows joined, late ones not among them", labels=["input"]
    )
    late = CounterMetricFamily(
        "streamjoin_late_rows", "Rows left out because they came too late", labels=["input"]
    )
    bad = CounterMetricFamily(
        "streamjoin_bad_messages", "Messages left out because they could not be decoded", labels=["input"]
    )
    for family, values in (
        (rows_in, figures.rows_in if figures else zeros),
        (late, figures.late if figures else zeros),
        (bad, figures.bad if figures else zeros),
    ):
        for name, value in moment.by_source(values).items():
            family.add_metric([name], value)
        yield family


def _gauges(moment: Moment, units: int) -> Iterator[Metric]:
    watermark = moment.watermark.timestamp() if moment.watermark else None
    rows = moment.figures.state_rows if moment.figures and moment.known else None
    for name, text, value in (
        ("state_rows", "Rows of state", rows),
        (
            "state_bytes",
            "Bytes of live segments and their indexes",
            moment.held_bytes if moment.known else None,
        ),
        ("memory_load", "State over what the ready executors may hold", moment.memory_load),
        ("skew", "Rows of the fullest unit over the mean, less 1", moment.skew(units)),
        ("watermark_seconds", "Event time of the unit furthest behind", watermark),
    ):
        if value is not None:
            yield GaugeMetricFamily(f"streamjoin_{name}", text, value=value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
