"""A batch as a tree of spans. Pure.

    batch
    ├─ latestOffset    ┐
    ├─ walCommit       │ Spark's steps, by the names that
    ├─ getBatch        │ streamjoin_batch_step_seconds_total has
    ├─ queryPlanning   │
    ├─ addBatch        │
    │  ├─ tasks        │     measured in this process
    │  └─ publish      │
    └─ commitOffsets   ┘

Law: a span stands for what was measured, and lies within the span above it. Spark says how long its steps took and
not when they began, but they follow each other: those before the join are laid from the begin of the batch, the join
and the commit from its end. Spark counts milliseconds, so a span may be cut by one or two of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from joinlib.metric.table import STEPS
from joinlib.model.stage import Pipeline

if TYPE_CHECKING:
    from joinlib.direct.report import BatchPhase, Report
    from joinlib.engine.receipt import Receipt

Value = str | int | float | Sequence[int] | Sequence[float]
_JOIN = STEPS.index("addBatch")


@dataclass(frozen=True)
class Span:
    """Something that took time. Times are in seconds since 1970."""

    name: str
    began: float
    ended: float
    attributes: Mapping[str, Value] = field(default_factory=dict)
    children: tuple["Span", ...] = ()
    error: str | None = None  # what is told of the error that ended it

    def within(self, began: float, ended: float) -> "Span":
        """Return the part of the span, and of those below it, between two moments."""
        begin = min(max(self.began, began), ended)
        end = min(max(self.ended, begin), ended)
        return replace(
            self, began=begin, ended=end, children=tuple(c.within(begin, end) for c in self.children)
        )


class BatchTrace(NamedTuple):
    """A batch, under the number that names its trace: 128 bits."""

    id: int
    root: Span


@dataclass(frozen=True)
class TraceSubject:
    """What the figures of a batch are called."""

    job: str
    sources: tuple[str, ...]  # the name in the spec of each input of the plan
    results: Mapping[str, int]  # the stage of each output
    units: int  # of a stage


def subject(job: str, pipeline: Pipeline) -> TraceSubject:
    """Return how the batches of a plan are told of."""
    sources = tuple(plan.source for plan in pipeline.inputs)
    return TraceSubject(job, sources, {r.name: r.stage for r in pipeline.results}, pipeline.units)


def committed(about: TraceSubject, report: "Report", progress: Mapping[str, Any] | None) -> Span:
    """Return a batch that is done.

    Args:
        about: How its figures are called.
        report: What its units said.
        progress: What Spark says of it; without that, there is only what this process has measured.
    """
    inner = tuple(_phase(about, report, phase) for phase in report.phases)
    attributes = _figures(about, report)
    if progress is None:
        began, ended = report.phases[0].began, report.phases[-1].ended
        return Span("batch", began, ended, attributes, inner)
    took = {step: ms / 1000 for step, ms in progress["durationMs"].items()}
    began = datetime.fromisoformat(progress["timestamp"]).timestamp()
    ended = began + took["triggerExecution"]
    return Span("batch", began, ended, attributes, tuple(_steps(began, ended, took, inner)))


def failed(
    about: TraceSubject,
    batch: int,
    began: float,
    ended: float,
    error: Exception,
    said: str,
    report: "Report | None",
) -> Span:
    """Return a batch that an error ended, with what is known of it; `said` is told of the error."""
    figures = _figures(about, report) if report else _name(about, batch)
    inner = tuple(_phase(about, report, phase) for phase in report.phases) if report else ()
    root = Span("batch", began, ended, {**figures, "error.type": type(error).__name__}, inner, said)
    return root.within(began, ended)


def _steps(began: float, ended: float, took: Mapping[str, float], inner: tuple[Span, ...]) -> Iterator[Span]:
    """Yield Spark's steps in their order; `inner` are the spans within the join."""
    ends = ended
    behind = []
    for step in reversed(STEPS[_JOIN:]):
        behind.append(Span(step, max(began, ends - took.get(step, 0.0)), ends))
        ends = behind[-1].began
    for step in STEPS[:_JOIN]:
        if step in took:
            yield Span(step, began, began := began + took[step]).within(0.0, ends)
    join, *rest = reversed(behind)
    yield replace(join, children=inner).within(join.began, join.ended)
    yield from rest


def _phase(about: TraceSubject, report: "Report", phase: "BatchPhase") -> Span:
    attributes = _stages(about, report.receipts) if phase.name == "tasks" else {}
    return Span(phase.name, phase.began, phase.ended, attributes)


# --- figures ------------------------------------------------------------------------------------------


def _name(about: TraceSubject, batch: int) -> dict[str, Value]:
    return {"streamjoin.job": about.job, "streamjoin.batch": batch}


def _figures(about: TraceSubject, report: "Report") -> dict[str, Value]:
    """Return the figures of a batch: sums, then those of each input and of each output that has a name."""
    told = report.receipts
    rows, late = _columns(r.rows_in for r in told), _columns(r.late for r in told)
    found = {
        **_name(about, report.batch),
        "streamjoin.rows_in": report.rows_in,
        "streamjoin.rows_out": report.rows_out,
        "streamjoin.late_rows": sum(late),
        "streamjoin.deleted_rows": sum(sum(r.deleted) for r in told),
        "streamjoin.bad_messages": sum(report.bad),
        "streamjoin.dead_letters": sum(one.count for r in told for one in r.dead),
        "streamjoin.executors": len({r.executor for r in told}),
    }
    for source in dict.fromkeys(about.sources):
        of = [i for i, name in enumerate(about.sources) if name == source]
        found[f"streamjoin.input.{source}.rows_in"] = sum(rows[i] for i in of if rows)
        found[f"streamjoin.input.{source}.late_rows"] = sum(late[i] for i in of if late)
    for name, stage in about.results.items():
        if name:
            made = sum(r.rows_out for r in told if r.unit // about.units == stage)
            found[f"streamjoin.output.{name}.rows_out"] = made
    return found


def _columns(rows: Iterable[tuple[int, ...]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _stages(about: TraceSubject, told: Sequence["Receipt"]) -> dict[str, Value]:
    """Return what the units of each stage took, stage after stage."""
    by_unit = sorted(told, key=lambda r: r.unit)
    stages = [[*units] for _, units in groupby(by_unit, lambda r: r.unit // about.units)]
    return {
        "streamjoin.stage.units": [len(units) for units in stages],
        "streamjoin.stage.seconds": [sum(r.seconds for r in units) for units in stages],
        "streamjoin.stage.longest_seconds": [max(r.seconds for r in units) for units in stages],
        "streamjoin.stage.commit_seconds": [sum(r.commit_seconds for r in units) for units in stages],
    }
