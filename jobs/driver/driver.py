"""`streamjoin-driver SPEC`: the one process that plans, commits and serves HTTP for a job on a cluster.

    Waiting    for the Lease, for folders of inputs, and for the checkpoint's lock: an older driver may still
               be ending
    Starting   Spark, executors, query
    Running    until SIGTERM, or until something fails
    Stopping   the current batch is finished, or abandoned and run again next time

Exit codes: 0 stopped on request; 2 the user's mistake, an input or state that cannot be read, or an error
that would recur: starting again does not help; 1 anything else: it may. The reason is also written, as one
line, where Kubernetes shows it.
"""

import contextlib
import itertools
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

from jobs import spark_conf
from jobs.driver.cluster import clear_executors, lease_of
from jobs.driver.environment import DriverEnvironment, driver_environment
from jobs.driver.guard import LeaseGuard
from jobs.driver.serve import Answers, application
from jobs.exported import metrics
from jobs.figures import beginning
from jobs.flow import Flow, default_cores
from jobs.image import of_image
from jobs.lineage.told import told_run
from jobs.page.answer import answer, subject
from jobs.page.notes import Notes
from jobs.page.rows import latest
from jobs.probes import choosers
from jobs.server import HttpServer
from jobs.traces.told import traced_run
from jobs.view import Moment, Phase, status
from joinlib.compiled import compiled
from joinlib.engine.checks import rewritten
from joinlib.errors import NotReady, SpecError, exit_code
from joinlib.lease import Contender, clock
from joinlib.metric.table import BY_NAME
from joinlib.registered import columns_in_registry, load
from joinlib.route.slots import fitting
from joinlib.scale.placement import placed, readers
from joinlib.scale.request import ExecutorRequest
from joinlib.scale.reserve import working
from joinlib.spec import load as load_spec
from joinlib.spec.model import StreamJoin
from joinlib.spec.telling import told

if TYPE_CHECKING:
    from joinlib.checkpoint.lock import Lock
    from joinlib.spark.executors import ExecutorPool

_LOOK_S = 0.5
_SOON_S = 0.1  # while executors come: what they have done is followed by the next step, at best before the next batch
_LOCK_S = 2.0
_LAST_WORDS_S = 10.0
_STOP_S = 80.0  # of the 90 s that Kubernetes allows
_MESSAGE = 2000  # characters
_SECONDS = (0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300)

log = logging.getLogger("streamjoin.driver")


class DriverProcess(Collector):
    """One run of the driver.

    The main thread drives the query. HTTP reads `moment`, which is replaced as a whole, and calls `scale`.
    """

    def __init__(self, file: Path, document: StreamJoin, around: DriverEnvironment) -> None:
        self.file, self.document, self.around = file, document, around
        self.executors = spark_conf.executors_of(document)
        cores = spark_conf.slots(self.executors) if around.place else default_cores()
        self.plan = compiled(document, cores, executors=bool(around.place))
        self.pipeline = self.plan.pipeline
        self.stopping, self.notes = threading.Event(), Notes()
        self._subject = subject(document.metadata.name, self.pipeline)
        self._pool: ExecutorPool | None = None
        self._placed: tuple[str, ...] = ()  # the executor of each partition, from the next batch on
        self._readers: list[str] = []  # the executors that read from then on; empty: any
        self._scaling, self._telling = threading.Lock(), threading.Lock()
        self._registry = registry = CollectorRegistry()
        seconds = BY_NAME["streamjoin_batch_seconds"]
        self._seconds = Histogram(seconds.name, seconds.help, buckets=_SECONDS, registry=registry)
        registry.register(self)
        self.moment = Moment(
            sources=tuple(p.source for p in self.pipeline.inputs),
            hashed=self.pipeline.hashed,
            probes=choosers(self.pipeline),
            phase="Waiting",
            wanted=spark_conf.initial_executors(self.executors),
            budget=spark_conf.memory(self.executors).state if around.place else None,
            stored=_stored(document.spec.checkpoint.folder, self.pipeline.units),
            config_hash=around.config_hash,
            columns=columns_in_registry(document),
        )

    # --- what HTTP asks ----------------------------------------------------------------------

    def answers(self) -> Answers:
        return Answers(
            status=lambda: status(self.moment, self.pipeline.units, time.monotonic()),
            page=lambda: answer(self._subject, self.moment, self.notes.latest(), time.monotonic()),
            metrics=lambda: generate_latest(self._registry),
            healthy=lambda: self.moment.phase != "Failed",
            ready=lambda: self.moment.phase == "Running",
            scale=self.scale,
            token=self.around.token,
        )

    def collect(self) -> Iterator[Metric]:
        return metrics(self.moment, self.pipeline.units, time.monotonic())

    def scale(self, asked: ExecutorRequest) -> None:
        """Change the number of executors, and tell why on the page and in the log.

        The bounds are those of the file now: they may change while the driver runs.

        Raises:
            SpecError: The number is out of bounds.
        """
        total = asked.total
        bounds = spark_conf.executors_of(load_spec(self.file))  # no registry says anything of them
        if not bounds.min <= total <= bounds.max:
            raise SpecError(f"total: {total} is not between min, {bounds.min}, and max, {bounds.max}")
        with self._scaling:
            if total != self.moment.wanted:
                said = f"{self.moment.wanted} -> {total} executors are wanted: {asked.reason}"
                log.info("%s", said)
                self.notes.say(said)
            self._tell(wanted=total)
            if self._pool is not None:
                self._pool.want(spark_conf.asked(bounds, total), self._held)

    # --- the run -----------------------------------------------------------------------------

    def run(self) -> None:
        """Run until asked to stop; raise whatever fails."""
        guard = self._guard()
        if guard is not None and not guard.hold(self.stopping, self._waits):
            return
        try:
            lock = self._lock() if self._inputs() else None
            if lock is not None:
                self._flow(lock, guard)
        finally:
            if guard is not None:
                guard.release()

    def _guard(self) -> LeaseGuard | None:
        place = self.around.place
        if place is None:
            return None
        lease = lease_of(self.document, place.pod.namespace, self.around.owner)
        return LeaseGuard(Contender(lease, place.pod.uid, clock))

    def _inputs(self) -> bool:
        """Wait for the folders of inputs, which another job may make; return False if asked to stop first."""
        while missing := _missing(self.document):
            self._waits("; ".join(missing))
            if self.stopping.wait(_LOCK_S):
                return False
        return True

    def _lock(self) -> "Lock | None":
        """Wait for the checkpoint's lock; return None if asked to stop first."""
        from joinlib.checkpoint.lock import Lock

        folder = self.document.spec.checkpoint.folder
        # Not `joinlib.retry`: it waits for as long as it takes, and before each attempt asks whether to stop.
        while not self.stopping.is_set():
            try:
                return Lock(folder)
            except NotReady as error:
                self._waits(str(error))
            except OSError as error:
                raise SpecError(
                    f"checkpoint {folder}: {error.strerror}; its volume must be writable"
                ) from error
            self.stopping.wait(_LOCK_S)
        return None

    def _flow(self, lock: "Lock", guard: LeaseGuard | None) -> None:
        self._enter("Starting")
        for warning in rewritten(self.plan.source):
            log.warning("%s", warning)
        place = self.around.place
        if place and not clear_executors(self.document, place.pod.namespace, self.stopping.wait):
            return
        flow = Flow(
            self.plan,
            until_done=False,
            partitions=self._fitting(self.moment.wanted) if place else None,
            conf=spark_conf.confs(self._as_wanted(), place) if place else {},
            lock=lock,
            before_commit=guard.check if guard else lambda: None,
            told=told_run(self.document, self.pipeline),
            traced=traced_run(self.document, self.pipeline),
        )
        flow.start()
        self._watch(flow)
        if flow.is_alive():
            self._enter("Stopping")
            self._hurry(flow)
            flow.stop()
            flow.join(_STOP_S)
        if flow.is_alive():
            log.error("the query did not stop in %d s", _STOP_S)
            os._exit(1)  # the lease is not released: Spark may still write
        if flow.error is not None:
            raise flow.error

    def _watch(self, flow: Flow) -> None:
        """Look at the flow until it ends or this driver is asked to stop.

        When Spark dies, so does what is asked of it here; why it died is the flow's error.
        """
        while flow.is_alive() and not self.stopping.is_set():
            try:
                self._look(flow)
            except Exception:
                flow.join(_LAST_WORDS_S)
                if flow.error is None:
                    raise

    def _hurry(self, flow: Flow) -> None:
        """Let nobody wait for the end of a batch that no executor works on; it runs again next time."""
        if self._pool is not None and flow.job is not None and not self.moment.there:
            flow.job.patience_s = 0.0

    def _as_wanted(self) -> StreamJoin:
        """Return the spec with the number of executors that was last requested."""
        executors = self.executors.model_copy(update={"instances": self.moment.wanted})
        spec = self.document.spec.model_copy(update={"executors": executors})
        return self.document.model_copy(update={"spec": spec})

    def _look(self, flow: Flow) -> None:
        """Take in what has happened since the last call; wait at most half a second for it."""
        reports = flow.reports(_SOON_S if self._pool and self._pool.coming else _LOOK_S)
        if flow.flowing.is_set() and self.moment.phase == "Starting":
            self._begin(flow)
        for report in reports:
            now = time.monotonic()
            self._tell(
                figures=(self.moment.figures or beginning(len(self.pipeline.inputs), now)).after(report, now),
                done_at=time.time(),
                last=latest(self.moment.last, report, self.document.spec.page.rows),
            )
            log.info("batch %d: %d rows in, %d rows out", report.batch, report.rows_in, report.rows_out)
        took, pool = flow.took, self._pool
        ready, leaving = (pool.ready(), len(pool.leaving())) if pool else ([], 0)
        warm = pool.warm() if pool else []  # on every call, so that new executors rehearse at once
        there = self._working(ready, warm)
        pace = self.moment.pace
        if took.batch > self.moment.took.batch:
            self._seconds.observe(took.seconds)
            self._tell(steps=_sums(self.moment.steps, took.steps))
            if took.lap is not None:
                pace = pace.after(replace(took.lap, executors=len(there)))
        elif not flow.busy:
            pace = pace.idle(time.time())
        self._tell(
            took=took,
            pace=pace,
            lag=flow.lag,
            loads=flow.loads,
            route_skew=flow.route_skew,
            heap=flow.heap,
            heaps=pool.heaps() if pool else {},
            hot=flow.hot,
            there=tuple(there),
            spare=len(ready) - len(there),
            leaving=leaving,
            refused=self._refused(),
            partitions=flow.job.partitions if flow.job else None,
        )
        reading = readers(warm, ready, pool.wanted) if pool else []
        self._spread(flow, [executor for executor in warm if executor in there], reading)

    def _refused(self) -> str:
        """Return why pods of executors are not made, also while Spark starts; nothing where there are none."""
        if not self.around.place:
            return ""
        from joinlib.spark.executors import refused

        return refused()

    def _working(self, ready: Sequence[str], warm: Sequence[str]) -> list[str]:
        """Return the executors that get units; the others that are ready are spare."""
        return working(ready, self.moment.wanted, self._placed, warm, self._held)

    @property
    def _held(self) -> dict[str, int]:
        """Bytes of state by executor."""
        return self.moment.figures.held_by_executor() if self.moment.figures else {}

    def _spread(self, flow: Flow, warm: Sequence[str], reading: list[str]) -> None:
        """Place the partitions from the next batch on: one per core, evenly on the executors that are warm.

        While an executor is starting or leaving, the number of partitions stays: changing it for a few
        batches would only move units twice.
        """
        moment, job = self.moment, flow.job
        if self._pool is None or job is None:
            return
        partitions = job.partitions
        if len(warm) == moment.wanted and not moment.leaving:
            partitions = self._fitting(len(warm))
        found = placed(partitions, warm, self._placed)
        if (found, reading) == (self._placed, self._readers):
            return
        if found != self._placed:
            log.info("from the next batch on: %d partitions, %s", partitions, _counted(found))
        self._placed, self._readers = found, reading
        job.spread(partitions, found, reading)

    def _fitting(self, executors: int) -> int:
        """Return the number of partitions that gives all cores of the executors something to join."""
        return fitting(self.pipeline.units, executors * self.executors.cores)

    def _begin(self, flow: Flow) -> None:
        """Enter the phase Running, with a pool of executors if this is a cluster."""
        from joinlib.spark.executors import ExecutorPool

        assert flow.job is not None
        with self._scaling:
            if self.around.place:
                total = spark_conf.asked(self.executors, self.moment.wanted)
                self._pool = ExecutorPool(flow.job.spark, total, self.executors.cores)
            self._tell(
                figures=beginning(len(self.pipeline.inputs), time.monotonic()),
                origin=_origin(self.document.spec.checkpoint.folder),
            )
        self._enter("Running")

    def failed(self, message: str) -> None:
        """Report the failure from now on."""
        self._tell(phase="Failed", message=message)

    def _enter(self, phase: Phase, message: str = "") -> None:
        log.info("%s", said := f"{phase}: {message}" if message else phase)
        self.notes.say(said)
        self._tell(phase=phase, message=message)

    def _waits(self, why: str) -> None:
        if why != self.moment.message:
            self._enter("Waiting", why)

    def _tell(self, **news: Any) -> None:
        with self._telling:
            self.moment = replace(self.moment, **news)


def _counted(placed: Sequence[str]) -> str:
    """Return how many partitions each executor has."""
    counts = sorted(Counter(placed).items(), key=lambda held: int(held[0]))
    return (
        ", ".join(f"{held} on executor {executor}" for executor, held in counts) or "wherever there is room"
    )


def _missing(document: StreamJoin) -> list[str]:
    """Return what to say of each input whose folder is not there; what else may be wrong with it, the run tells."""
    paths = {name: Path(given.files.path) for name, given in document.spec.inputs.items() if given.files}
    return [
        f"input {name}: {path} is not there yet; create it, or correct the input's path"
        for name, path in paths.items()
        if not os.path.lexists(path)
    ]


def _sums(before: Mapping[str, float], more: Mapping[str, float]) -> dict[str, float]:
    return {name: before.get(name, 0.0) + more.get(name, 0.0) for name in {*before, *more}}


def _stored(checkpoint: Path, units: int) -> frozenset[int]:
    """Return the units that have segments; units of later stages follow those of earlier ones."""
    found = [f for f in checkpoint.glob("state/*/*") if f.name.isdigit() and f.parent.name.isdigit()]
    return frozenset(int(f.parent.name) * units + int(f.name) for f in found)


def _origin(checkpoint: Path) -> tuple[str, int] | None:
    """Return of which job, and behind which of its batches, a checkpoint began as a fork.

    None also where the job's name was not noted.
    """
    from joinlib.checkpoint.identity import origin_of

    known = origin_of(checkpoint) or {}
    return (known["name"], known["batch"]) if "name" in known else None


def begun(file: Path, around: DriverEnvironment) -> DriverProcess:
    """Return a driver of the job of a file, with the columns that a registry has.

    Raises:
        SpecError: It cannot be run. It is told by the fields of the spec: whoever wrote that has not this file.
        NotReady: The registry does not answer.
    """
    try:
        document = of_image(load(file))
    except SpecError as error:
        raise SpecError(str(error).replace(f"{file}: ", "")) from None
    try:
        return DriverProcess(file, document, around)
    except SpecError as error:
        raise SpecError(told(error)) from None


def drive(file: Path, around: DriverEnvironment) -> int:
    """Run a driver and return its exit code.

    What went wrong is logged, and written to the termination log.
    """
    driver = None
    try:
        driver = begun(file, around)
        for name in ("streamjoin", "joinlib"):
            logging.getLogger(name).addHandler(driver.notes)
        with _serving(driver):
            driver.run()
    except Exception as error:  # noqa: BLE001 - the one place where an error becomes an exit code
        if driver is not None:
            driver.failed(one_line(error))
        with contextlib.suppress(OSError):
            around.termination_log.write_text(one_line(error) + "\n")
        log.error("%s", one_line(error))  # noqa: TRY400 - the flow has printed the traceback
        return exit_code(error)
    log.info("stopped")
    return 0


@contextlib.contextmanager
def _serving(driver: DriverProcess) -> Iterator[None]:
    signal.signal(signal.SIGTERM, lambda *_: driver.stopping.set())
    signal.signal(signal.SIGINT, lambda *_: driver.stopping.set())
    around = driver.around
    app = application(driver.answers(), open_to_all=around.tls is None, names=around.names)
    http = HttpServer(app, around.port, around.tls)
    http.start()
    try:
        yield
    finally:
        http.stop()


def one_line(error: Exception) -> str:
    """Return what went wrong in one line, without the JVM's stack trace."""
    said = itertools.takewhile(
        lambda line: not line.startswith("at "), map(str.strip, str(error).splitlines())
    )
    text = " ".join(" ".join(said).split()) or type(error).__name__
    return text if len(text) <= _MESSAGE else f"{text[: _MESSAGE - 1]}…"


def _ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def main() -> None:
    """Run the command line."""
    if len(sys.argv) != 2:
        print("usage: streamjoin-driver SPEC", file=sys.stderr)
        sys.exit(2)
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING, stream=sys.stderr
    )
    log.setLevel(logging.INFO)
    # SIGTERM goes to all processes of the container, but Spark's JVM must not end before the query has
    # stopped. A JVM that is started with a signal ignored goes on ignoring it.
    os.register_at_fork(after_in_child=_ignore_sigterm)
    code = drive(Path(sys.argv[1]), driver_environment(os.environ))
    logging.shutdown()
    sys.stderr.flush()
    os._exit(code)  # nothing is left to do: do not wait for threads of Spark and of the query's planner
