"""A run tells a collector of OpenTelemetry of its batches: one trace for each.

    Spark's thread    a batch is published ─► its report waits
    flow's thread     Spark says what its steps took ─► report and steps become a trace
    sender's thread   the traces of a few seconds become one request

Law: nothing here stops or slows a run, or fails it; what waits is bounded. A batch that fails is told of whatever
share of the others is.
"""

import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jobs.post import Poster, Wording
from jobs.report import redact
from jobs.traces.settings import TraceSettings, settings
from jobs.traces.span import BatchTrace, Span, TraceSubject, committed, failed, subject
from joinlib.checkpoint import batches
from joinlib.model.stage import Pipeline
from joinlib.spec.model import StreamJoin

if TYPE_CHECKING:
    from joinlib.direct.report import Report

_GATHER_S = 5.0
_REPORTS = 20  # that wait for Spark's word
_BITS = 64  # of a trace's number, by which it is told of or not

Progress = Callable[[int], Iterable[Mapping[str, Any]]]  # what Spark says of the batches behind one


class _Waiting(NamedTuple):
    trace: int
    report: "Report"


class TracedRun:
    """The batches of one run, as they are told of."""

    def __init__(
        self,
        about: TraceSubject,
        sender: Poster[BatchTrace],
        ratio: float,
        hidden: redact.Redaction,
        logs: Path,
        draw: Callable[[int], int] = random.getrandbits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._about, self._sender, self._ratio, self._hidden = about, sender, ratio, hidden
        self._logs, self._draw, self._clock = logs, draw, clock
        self._waiting = deque[_Waiting](maxlen=_REPORTS)
        self._since = 0.0  # when the last batch that was told of had ended

    @property
    def outage(self) -> str:
        """What is wrong with the endpoint; empty: it takes what is sent."""
        return self._sender.outage

    def begun(self) -> None:
        """Say that batches may come."""
        self._since = self._clock()
        self._sender.start()

    def batch(self, report: "Report") -> None:
        """Take in a batch that is published; return at once."""
        number = self._draw(128) or 1  # 0 is no number
        if number % (1 << _BITS) < self._ratio * (1 << _BITS):
            self._waiting.append(_Waiting(number, replace(report, samples={})))

    def look(self, progress: Progress) -> None:
        """Tell of the batches that Spark has committed."""
        if not self._waiting:
            return
        said = {one["batchId"]: one for one in progress(self._waiting[0].report.batch - 1)}
        while self._waiting and self._waiting[0].report.batch <= max(said, default=-1):
            trace, report = self._waiting.popleft()
            self._tell(trace, committed(self._about, report, said.get(report.batch)))

    def ended(self, error: Exception | None) -> None:
        """Tell of the batches that are left, and of the one that an error ended."""
        with suppress(OSError):  # the logs of the batches cannot be read: the run's own error says so
            self._last(error)
        self._sender.close()

    def _last(self, error: Exception | None) -> None:
        cut_off = batches.interrupted(self._logs)
        left = {one.report.batch: one for one in self._waiting}
        of = left.pop(cut_off[0], None) if cut_off else None
        for trace, report in left.values():
            self._tell(trace, committed(self._about, report, None))
        if error is None:
            return
        now = self._clock()
        batch, began = (cut_off[0], now - cut_off[1]) if cut_off else (self._next(), now)
        root = failed(
            self._about,
            batch,
            max(began, self._since),
            now,
            error,
            self._hidden.error(error),
            of.report if of else None,
        )
        self._tell(of.trace if of else self._draw(128) or 1, root)

    def _next(self) -> int:
        begun = batches.begun(self._logs)
        return 0 if begun is None else begun + 1

    def _tell(self, trace: int, root: Span) -> None:
        self._since = root.ended
        self._sender.offer(BatchTrace(trace, root))


def traced_run(
    document: StreamJoin, pipeline: Pipeline, environment: Mapping[str, str] = os.environ
) -> TracedRun | None:
    """Return what tells of the batches of a run; None if the environment names no endpoint.

    Raises:
        SpecError: What it names cannot be understood.
    """
    job = document.metadata.name
    found = settings(job, environment)
    if found is None:
        return None
    hidden = redact.of(
        document.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True), environment
    )
    about, logs = subject(job, pipeline), document.spec.checkpoint.folder / "spark"
    return TracedRun(about, trace_sender(found), found.ratio, hidden, logs)


def trace_sender(found: TraceSettings, gather_s: float = _GATHER_S) -> Poster[BatchTrace]:
    """Return what sends traces, those of `gather_s` seconds at a time."""

    def bodies(traces: Sequence[BatchTrace]) -> Iterable[bytes]:
        from jobs.traces.encode import encode  # loads OpenTelemetry

        return [encode(found.resource, traces, random.getrandbits)] if traces else []

    def missed(answer: bytes) -> str:
        from jobs.traces.encode import refused

        return refused(answer)

    return Poster(found.to, Wording("traces", "traces"), bodies, missed, gather_s)
