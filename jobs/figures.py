"""Totals of a run so far: sums over its batches. Pure: the clock is passed in."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from jobs.pace import Lap
from joinlib.lookup.used import Used, later, total

if TYPE_CHECKING:
    from joinlib.direct.report import Report
    from joinlib.engine.receipt import Receipt

_WINDOW_S = 10.0


@dataclass(frozen=True)
class Mark:
    """Totals at a moment."""

    at: float
    rows_in: tuple[int, ...]  # by input
    rows_out: int


class Took(NamedTuple):
    """How long the last committed batch took."""

    batch: int = -1
    seconds: float = 0.0
    steps: Mapping[str, float] = {}  # seconds, by Spark's names
    lap: Lap | None = None  # None: no batch was committed


@dataclass(frozen=True)
class UnitWork:
    """Totals of a unit in this run."""

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    commit_seconds: float = 0.0

    def after(self, receipt: "Receipt") -> "UnitWork":
        """Return the work after one more batch."""
        return UnitWork(
            self.rows_in + sum(receipt.rows_in),
            self.rows_out + receipt.rows_out,
            self.seconds + receipt.seconds,
            self.commit_seconds + receipt.commit_seconds,
        )


@dataclass(frozen=True)
class Figures:
    """The figures after some batches. Sums are over this run, not over the life of the checkpoint."""

    began: float  # when rows could begin to flow
    marks: tuple[Mark, ...]  # those of the last few seconds, the newest last; at least one
    batches: int = 0
    batch: int | None = None  # number of the latest batch
    late: tuple[int, ...] = ()  # by input
    bad: tuple[int, ...] = ()  # messages, by input
    deleted: tuple[int, ...] = ()  # rows that came as deletions, by input
    unknown: tuple[int, ...] = ()  # deletions without a row, by input
    # Dead letters, by input or output, and reason.
    dead: Mapping[tuple[str, str], int] = field(default_factory=dict)
    merged_bytes: int = 0
    receipts: Mapping[int, "Receipt"] = field(default_factory=dict)  # the latest of each unit
    latest: tuple["Receipt", ...] = ()  # those of the latest batch that had work for a unit
    work: Mapping[int, UnitWork] = field(default_factory=dict)  # by unit
    tables: Mapping[str, Used] = field(default_factory=dict)  # by alias, over all units
    probes: Mapping[int, Any] = field(default_factory=dict)  # by unit: its probe orders, as last chosen

    @property
    def rows_in(self) -> tuple[int, ...]:
        return self.marks[-1].rows_in

    @property
    def rows_out(self) -> int:
        return self.marks[-1].rows_out

    @property
    def state_rows(self) -> int:
        return sum(r.state_rows for r in self.receipts.values())

    @property
    def dead_rows(self) -> int:
        """Rows of the state that were deleted, until a merge leaves them out."""
        return sum(r.dead_rows for r in self.receipts.values())

    @property
    def state_bytes(self) -> int:
        """Bytes on disk, including retired segments."""
        return sum(r.state_bytes + r.retired_bytes for r in self.receipts.values())

    @property
    def index_bytes(self) -> int:
        return sum(r.index_bytes for r in self.receipts.values())

    @property
    def mapped_bytes(self) -> int:
        """Bytes that all executors map."""
        return sum(r.mapped_bytes for r in self.receipts.values())

    @property
    def held_bytes(self) -> int:
        """Bytes that all executors hold in memory."""
        return sum(r.held_bytes for r in self.receipts.values())

    def held_by_executor(self) -> dict[str, int]:
        """Return the bytes that each executor holds in memory, by the one that joined each unit last."""
        held: dict[str, int] = {}
        for receipt in self.receipts.values():
            held[receipt.executor] = held.get(receipt.executor, 0) + receipt.held_bytes
        return held

    @property
    def watermark(self) -> int | None:
        """The watermark (µs) of the unit that is furthest behind."""
        return min((r.watermark for r in self.receipts.values()), default=None)

    def after(self, report: "Report", now: float) -> "Figures":
        """Return the figures after one more batch. `now` is the time at which it ended."""
        by_input = list(zip(*(r.rows_in for r in report.receipts), strict=True))
        late = list(zip(*(r.late for r in report.receipts), strict=True))
        receipts = {**self.receipts, **{r.unit: r for r in report.receipts}}
        mark = Mark(now, _sum(self.rows_in, by_input), self.rows_out + report.rows_out)
        return replace(
            self,
            marks=(*_recent(self.marks, now), mark),
            batches=self.batches + 1,
            batch=report.batch,
            late=_sum(self.late, late),
            bad=_sum(
                self.bad, [(max(column),) for column in zip(*(r.bad for r in report.receipts), strict=True)]
            ),
            deleted=_sum(self.deleted, list(zip(*(r.deleted for r in report.receipts), strict=True))),
            unknown=_sum(self.unknown, list(zip(*(r.unknown for r in report.receipts), strict=True))),
            dead=self._dead(report.receipts),
            merged_bytes=self.merged_bytes + sum(r.merged_bytes for r in report.receipts),
            receipts=receipts,
            latest=report.receipts or self.latest,
            work={
                **self.work,
                **{r.unit: self.work.get(r.unit, UnitWork()).after(r) for r in report.receipts},
            },
            tables=self._tables(report.receipts, receipts.values()),
            probes={**self.probes, **{r.unit: r.probes for r in report.receipts if r.probes}},
        )

    def _dead(self, batch: Iterable["Receipt"]) -> Mapping[tuple[str, str], int]:
        """Return the dead letters so far."""
        found = Counter(dict(self.dead))
        for one in (one for r in batch for one in r.dead):
            found[one.source, one.reason] += one.count
        return found

    def _tables(self, batch: Iterable["Receipt"], now: Iterable["Receipt"]) -> Mapping[str, Used]:
        """Return the tables' figures: lookups are summed over batches, sizes are each unit's latest."""
        done = _totals(batch)
        return {
            alias: later(self.tables.get(alias, Used()), done.get(alias, Used()), kept)
            for alias, kept in _totals(now).items()
        }

    def spread(self, at: Container[int], units: int) -> list[int]:
        """Return the rows of the latest batch in each unit, of the inputs `at`; units without work have 0."""
        rows = [0] * units
        for r in self.latest:
            rows[r.unit % units] += sum(n for i, n in enumerate(r.rows_in) if i in at)
        return rows

    def rates(self, now: float) -> tuple[tuple[float, ...], float]:
        """Return rows per second of each input and of the result, over the last few seconds.

        They are 0 after a long silence.
        """
        first, last = self.marks[0], self.marks[-1]
        seconds = last.at - first.at
        if seconds <= 0 or now - last.at > max(_WINDOW_S, 2 * seconds):
            return (0.0,) * len(self.rows_in), 0.0
        each = tuple((b - a) / seconds for a, b in zip(first.rows_in, last.rows_in, strict=True))
        return each, (last.rows_out - first.rows_out) / seconds


def beginning(inputs: int, now: float) -> Figures:
    """Return the figures before the first batch."""
    zeros = (0,) * inputs
    return Figures(now, (Mark(now, zeros, 0),), late=zeros, bad=zeros, deleted=zeros, unknown=zeros)


def _totals(receipts: Iterable["Receipt"]) -> dict[str, Used]:
    """Sum the figures of each table, by alias, over the units of the stage that looks it up."""
    found: dict[str, list[Used]] = {}
    for used in (used for receipt in receipts for used in receipt.tables):
        found.setdefault(used.table, []).append(used)
    return {alias: total(of_one) for alias, of_one in found.items()}


def _sum(before: tuple[int, ...], columns: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(a + sum(c) for a, c in zip(before, columns, strict=True)) if columns else before


def _recent(marks: tuple[Mark, ...], now: float) -> tuple[Mark, ...]:
    """Return the marks of the window, and at least the newest: a batch may take longer than the window."""
    return tuple(m for m in marks if now - m.at <= _WINDOW_S) or marks[-1:]
