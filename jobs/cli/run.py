"""`streamjoin run`: from a spec to a summary, on the terminal.

    main thread   spec ─► plan ─► (reports ─► figures ─► view)* ─► summary
    flow thread              Spark starts ─► batches ─► Spark stops

The first Ctrl-C or SIGTERM stops the run after the current batch. A second one, and one before the query has
started, ends it at once: a batch that is cut off then runs again next time, so the checkpoint is not harmed.
"""

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from jobs.cli.denied import denied
from jobs.cli.screen import Live, Plain, Scene, Shown, View
from jobs.cli.summary import near, summary
from jobs.figures import Figures, beginning
from jobs.flow import Flow, default_cores
from jobs.lineage.told import told_run
from jobs.page.rows import LastRows, latest
from jobs.probes import choosers
from jobs.terminal import lines
from jobs.traces.told import traced_run
from joinlib.compiled import compiled
from joinlib.engine.checks import rewritten
from joinlib.errors import SpecError, StreamJoinError, Unforeseen, exit_code
from joinlib.plan import Pipeline
from joinlib.plan.explain import cautions
from joinlib.plan.unused import unused
from joinlib.spec.model import StreamJoin

if TYPE_CHECKING:
    from rich.console import Console

    from jobs.view import Moment

_REFRESH_S = 0.2
_ONE_SIGNAL_S = 0.5


@dataclass(frozen=True)
class Options:
    """How to run, where the spec does not say."""

    until_done: bool = False
    cores: int | None = None  # None means all that this process may use
    conf: Mapping[str, str] | None = None  # Spark settings
    plain: bool = False
    page: int | None = None  # the port of the run's page; None means no page


def run(document: StreamJoin, options: Options, terminal: TextIO, log: Path) -> bool:
    """Run a spec until the inputs are done or the user stops it; raise whatever fails. Return whether it needed Spark.

    Args:
        document: The spec.
        options: How to run it.
        terminal: Where to write for the user.
        log: The file that takes Spark's output, for error messages.
    """
    from rich.console import Console

    spec = document.spec.model_copy(update={"executors": None})  # there are none: this machine has all units
    document = document.model_copy(update={"spec": spec})
    plan = compiled(document, options.cores or default_cores())
    pipeline, again = plan.pipeline, rewritten(plan.source)
    check_folders(document, [source.name for source in plan.source.sources])
    console = Console(file=terminal, no_color=options.plain or None, width=None if terminal.isatty() else 160)
    _warn(console, (*cautions(pipeline), *unused(document.spec), *again))
    plain = options.plain or not terminal.isatty() or console.is_dumb_terminal
    told, traced = told_run(document, pipeline), traced_run(document, pipeline)
    flow = Flow(plan, until_done=options.until_done, conf=options.conf or {}, told=told, traced=traced)
    try:
        view = Plain(console) if plain else Live(console)
        watch = WatchedRun(flow, document, pipeline, time.monotonic())
        with _page(watch, options.page, console):
            scene = _watch(watch, view)
    except KeyboardInterrupt:
        _end_at_once(console, flow.flowing.is_set())
    _warn(console, flow.outages)
    if flow.error is not None:
        raise _user_error(flow.error, log, document) from flow.error
    console.print(summary(scene, document), highlight=False, soft_wrap=True)
    return flow.job is not None and flow.job.used_spark


def check_folders(document: StreamJoin, read: Iterable[str]) -> None:
    """Check that the folders of inputs are there, so that one that is missing is told at its field.

    Raises:
        SpecError: One is not.
    """
    for name in read:
        files = document.spec.inputs[name].files
        if files is not None and not files.path.exists():
            field = f"inputs.{name}.files.path"
            raise SpecError(
                f"{field}: {near(files.path)}: there is no such folder; create it, or correct the input's path"
            )


def _warn(console: "Console", warnings: Iterable[str]) -> None:
    for warning in warnings:
        console.print(lines(f"warning: {warning}"), style="yellow", highlight=False, soft_wrap=True)


@dataclass
class WatchedRun:
    """A run as it is shown: its flow, and the figures so far."""

    flow: Flow
    document: StreamJoin
    pipeline: Pipeline
    began: float
    figures: Figures | None = None
    stopping: bool = False
    last: Mapping[str, LastRows] = field(default_factory=dict)  # for the page

    def look(self, view: View, wait_s: float, *, stopping: bool) -> Scene:
        """Wait for reports, show what they say, and return the scene."""
        self.stopping = stopping
        inputs = _shown(self.document, self.pipeline)
        reports = self.flow.reports(wait_s)
        if self.figures is None and (reports or self.flow.flowing.is_set()):
            self.figures = beginning(len(inputs), time.monotonic())
        for report in reports:
            assert self.figures is not None
            self.figures = self.figures.after(report, time.monotonic())
            self.last = latest(self.last, report, self.document.spec.page.rows)
            for name, (rows, of) in report.samples.items():
                if self.document.spec.results[name].console is not None:
                    view.sample(f"{name + ', ' if name else ''}batch {report.batch}", rows, of)
        scene = Scene(
            self.document.metadata.name,
            inputs,
            self.figures,
            self.flow.lag,
            self.flow.took,
            self.flow.busy,
            self.began,
            stopping,
            choosers(self.pipeline),
            _rows_out(self.pipeline, self.figures),
            spark_starts=self.flow.job is not None and self.flow.job.spark_starts,
        )
        view.update(scene)
        return scene


@contextlib.contextmanager
def _page(watch: WatchedRun, port: int | None, console: "Console") -> Iterator[None]:
    """Serve the page of the run inside the block, if one is asked for."""
    if port is None:
        yield
        return
    from jobs.cli.page import moment_of, serving

    def moment() -> "Moment":
        return moment_of(watch.flow, watch.pipeline, watch.figures, watch.stopping, watch.last)

    with serving(port, watch.document.metadata.name, watch.pipeline, moment) as address:
        console.print(f"page: {address}", highlight=False, soft_wrap=True)
        yield


def _watch(watch: WatchedRun, view: View) -> Scene:
    """Show the flow until it is over."""
    with view, _signals(watch.flow) as asked:
        watch.flow.start()
        while True:
            alive = watch.flow.is_alive()
            scene = watch.look(view, _REFRESH_S if alive else 0, stopping=bool(asked))
            if not alive:
                return scene


def _rows_out(pipeline: Pipeline, figures: Figures | None) -> dict[str, int]:
    """Return the rows of each result so far, by output. The only result is told of by all units: other stages make none."""
    work = figures.work if figures else {}
    if not pipeline.named:
        return {"": sum(done.rows_out for done in work.values())}
    return {
        result.name: sum(
            done.rows_out for unit, done in work.items() if unit // pipeline.units == result.stage
        )
        for result in pipeline.named
    }


@contextlib.contextmanager
def _signals(flow: Flow, clock: Callable[[], float] = time.monotonic) -> Iterator[list[float]]:
    """Stop the flow on a signal; yield the list of times at which signals came.

    Repetitions within half a second count as one: `timeout` sends each signal twice.
    """
    asked: list[float] = []

    def ask(_: int, __: object) -> None:
        now = clock()
        if asked and now - asked[-1] < _ONE_SIGNAL_S:
            return
        if asked or not flow.flowing.is_set():
            raise KeyboardInterrupt
        asked.append(now)
        flow.stop()

    before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(console: "Console", flowing: bool) -> None:
    """Exit without waiting for Spark: its JVM ends when this process is gone."""
    console.print(
        "ended at once; run again to go on" if flowing else "stopped before any row; run again to go on"
    )
    os._exit(130 if flowing else 0)


def _shown(document: StreamJoin, pipeline: Pipeline) -> tuple[Shown, ...]:
    """Return a row per input; where several read one source, each shows its own name too."""
    sources = Counter(p.source for p in pipeline.inputs)
    return tuple(
        Shown(
            p.source if sources[p.source] == 1 else f"{p.source} {p.alias}",
            p.source,
            exact=(files := document.spec.inputs[p.source].files) is None or files.format == "parquet",
            filtered=p.filter is not None,
        )
        for p in pipeline.inputs
    )


def _user_error(error: Exception, log: Path, document: StreamJoin | None = None) -> StreamJoinError:
    """Return the error itself if it is meant for users; otherwise its first lines, and where the rest is."""
    if isinstance(error, StreamJoinError) and type(error) not in (StreamJoinError, Unforeseen):
        return error
    if isinstance(error, ConnectionError):
        return StreamJoinError(
            "the run failed: Spark's Java process has died; somebody killed it, or memory ran out\n"
            f"its log is {near(log)}; run again to go on from the last batch"
        )
    if isinstance(error, OSError) and (mistake := denied(error, document)) is not None:
        return mistake
    kind = "" if isinstance(error, StreamJoinError) else f"{type(error).__name__}: "
    failed = f"the run failed: {kind}{_short(str(error))}\nthe whole log is in {near(log)}"
    if exit_code(error) == 1:
        return StreamJoinError(f"{failed}; run again to go on from the last batch")
    return Unforeseen(
        f"{failed}; another run would fail in the same way: this is a defect of StreamJoin, or rows that it"
        " did not expect; please report it"
    )


def _short(text: str) -> str:
    return " ".join(line.strip() for line in text.splitlines()[:3] if line.strip())[:400]
