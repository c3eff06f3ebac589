"""What does a batch wait for when it meets new executors?

A job on one executor gets more, some times.

    python bench/cold.py [ARRIVALS [MODE [TOGETHER]]]

TOGETHER is how many come at once: 1 unless it is said.

MODE: product     it takes tasks when it is warm (`WarmExecutor.java`), and units when it has rehearsed (`rehearsal.py`)
      gate        the first of these alone
      cold        neither: it takes tasks and units as soon as Spark knows it

Prints for each batch how long it took and where the state's partitions lie, and at the end, for each arrival,
the median batch before it, the longest ones after it, when after the request the last of the executors had
which part behind it, and what CPU time the processes of each took by then.
"""

import os
import re
import runpy
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from joinlib.direct.report import Report
    from joinlib.spark.job import RunningJob

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: cold}
spec:
  sql: SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT, v STRING", generator: {rowsPerSecond: 5000, keys: 1000000}}
    b: {schema: "k BIGINT, v STRING", generator: {rowsPerSecond: 5000, keys: 1000000}}
  output: {noop: {}}
  join: {units: 8}
  batch: {interval: 1s}
  checkpoint: {path: checkpoint}
"""
BEFORE, AFTER, PATIENCE_S = 6, 20, 90.0


@dataclass
class Arrival:
    """What was seen of one; seconds, `parts` since it was asked for."""

    before: list[float] = field(default_factory=list)  # batches
    after: list[float] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)  # CPU seconds of a new executor by then

    def __str__(self) -> str:
        longest = ", ".join(f"{s:.1f}" for s in sorted(self.after, reverse=True)[:3])
        parts = ", ".join(f"{part} {at:.1f} ({self.cpu[part]:.1f} CPU)" for part, at in self.parts.items())
        return f"batches {statistics.median(self.before):.1f} s before, at most {longest} s after; {parts}"


class Run:
    """A job whose executors come and go; units are placed as the driver places them."""

    def __init__(self, job: "RunningJob", reports: list["Report"], mode: str, together: int) -> None:
        from joinlib.spark.executors import ExecutorPool

        self.job, self.reports, self.mode, self.all = job, reports, mode, 1 + together
        self.pool, self.chosen = ExecutorPool(job.spark, self.all, 1), tuple[str, ...]()
        self.reading = list[str]()
        self.began, self.old = time.monotonic(), set[psutil.Process]()
        self.seen, self.now = 0, Arrival()

    def arrival(self) -> Arrival:
        """One executor does the work of all; then there are more."""
        self.began = time.monotonic()
        while (
            len(self.pool.ready()) != self.all or not self.reports
        ):  # no batch is under way, so nothing of it is lost
            self._wait()
        self.pool.want(1)
        while self.pool.leaving() or len(self._placed()) != 1:
            self._batch()
        before = [self._batch() for _ in range(BEFORE)]
        self.began, self.now, self.old = time.monotonic(), Arrival(before), executors()
        self.pool.want(self.all)
        while len(self.now.after) < AFTER or len(self._placed()) != self.all:
            self.now.after.append(self._batch())
        return self.now

    def _batch(self) -> float:
        """Seconds of the next one."""
        while len(self.reports) == self.seen:
            self._wait()
        self.seen = len(self.reports)
        batch = self.reports[-1].batch
        while (done := self.job.last()) is None or done["batchId"] < batch:
            self._wait()
        if len(self._placed()) == self.all:
            self._part("first task of a unit")
        took = float(done["durationMs"]["triggerExecution"]) / 1000
        line = f"batch {batch} took {took:.1f} s on {self._where()}"
        print(f"{time.monotonic() - self.began:6.1f} s  {line}", flush=True)
        return took

    def _wait(self) -> None:
        at = time.monotonic() - self.began
        assert at < PATIENCE_S + AFTER, "executors did not come or go"
        self.job.wait(0.1)
        ready, warm = self.pool.ready(), self._warm()
        for part, there in (("takes tasks", ready), ("takes units", warm)):
            if len(there) == self.all:
                self._part(part)
        self._spread(ready, warm)

    def _spread(self, ready: list[str], warm: list[str]) -> None:
        """Place units and readers as the driver does."""
        from joinlib.scale.placement import placed, readers

        chosen = placed(self.job.partitions, warm, self.chosen)
        reading = readers(warm, ready, self.pool.wanted)
        if (chosen, reading) != (self.chosen, self.reading):
            self.chosen, self.reading = chosen, reading
            self.job.spread(self.job.partitions, chosen, reading)

    def _part(self, name: str) -> None:
        if name not in self.now.parts:
            self.now.parts[name] = time.monotonic() - self.began
            self.now.cpu[name] = sum(map(cpu_seconds, executors() - self.old)) / (self.all - 1)

    def _warm(self) -> list[str]:
        return self.pool.warm() if self.mode == "product" else self.pool.ready()

    def _where(self) -> dict[int, str]:
        """The executor of each partition."""
        return {r.unit % self.job.partitions: r.executor for r in self.reports[-1].receipts}

    def _placed(self) -> set[str]:
        return set(self._where().values())


def executors() -> set[psutil.Process]:
    """Return the JVMs of all executors."""
    every = psutil.process_iter(["cmdline"])
    return {p for p in every if any("CoarseGrainedExecutor" in word for word in p.info["cmdline"] or ())}


def cpu_seconds(executor: psutil.Process) -> float:
    """Return the CPU time of an executor and its Python processes."""
    every = [executor, *executor.children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in every)


def main(arrivals: int, mode: str, together: int) -> None:
    from jobs import spark_conf
    from joinlib.compiled import compiled
    from joinlib.spark.boot import archive, home, jar
    from joinlib.spark.job import started
    from joinlib.spec import parse

    home.use()
    reports: list[Report] = []
    bench = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        conf = {
            "spark.master": f"local-cluster[{1 + together},1,1024]",
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": " ".join([*spark_conf.EXECUTOR_JAVA, *archive.options()]),
            "spark.executorEnv.PYTHONPATH": f"{bench.parent}:{bench}",
            "spark.executorEnv.STREAMJOIN_LOCAL_DIR": folder,
            "spark.python.daemon.module": Path(__file__).stem,
            "spark.locality.wait": "10s",
            "spark.shuffle.reduceLocality.enabled": "false",
            "spark.decommission.enabled": "true",
            **(jar.warming() if mode != "cold" else {}),
        }
        document = parse(SPEC, "cold.yaml", Path(folder))
        plan = compiled(document, 1 + together)
        with started(plan, reports.append, until_done=False, cores=1 + together, conf=conf) as job:
            run = Run(job, reports, mode, together)
            found = [run.arrival() for _ in range(arrivals)]
    print(mode, *found, sep="\n  ", flush=True)


def daemon() -> None:
    """Spark's Python daemon, told what only pods are told: the executor's id.

    It stands in the address of its log.
    """
    if found := re.search(r"executorId=(\d+)", os.environ.get("SPARK_LOG_URL_STDERR", "")):
        os.environ["SPARK_EXECUTOR_ID"] = found[1]
    runpy.run_module("joinlib.spark.boot.daemon", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1].isdigit():
        given = [*sys.argv[1:], *("3", "product", "1")[len(sys.argv) - 1 :]]
        main(int(given[0]), given[1], int(given[2]))
    else:
        daemon()
