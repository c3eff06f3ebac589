"""What does a batch wait for when it meets a new executor?

A job on one executor gets a second one, some times.

    python bench/cold.py [ARRIVALS [MODE]]

MODE: product     it takes tasks when it is warm (`WarmExecutor.java`), and units when it has rehearsed (`rehearsal.py`)
      gate        the first of these alone
      cold        neither: it takes tasks and units as soon as Spark knows it

Prints for each batch how long it took and where the state's partitions lie, and at the end, for each arrival,
the median batch before it, the longest ones after it, and when after the request the executor had which part
behind it.
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

    def __str__(self) -> str:
        longest = ", ".join(f"{s:.1f}" for s in sorted(self.after, reverse=True)[:3])
        parts = ", ".join(f"{part} {at:.1f}" for part, at in self.parts.items())
        return f"batches {statistics.median(self.before):.1f} s before, at most {longest} s after; {parts}"


class Run:
    """A job whose executors come and go; units are placed as the driver places them."""

    def __init__(self, job: "RunningJob", reports: list["Report"], mode: str) -> None:
        from joinlib.spark.executors import ExecutorPool

        self.job, self.reports, self.mode = job, reports, mode
        self.pool, self.chosen = ExecutorPool(job.spark, 2, 1), tuple[str, ...]()
        self.began, self.seen, self.parts = time.monotonic(), 0, dict[str, float]()

    def arrival(self) -> Arrival:
        """One executor does the work of all; then there is a second one."""
        self.began = time.monotonic()
        while (
            len(self.pool.ready()) != 2 or not self.reports
        ):  # no batch is under way, so nothing of it is lost
            self._wait()
        self.pool.want(1)
        while self.pool.leaving() or len(self._placed()) != 1:
            self._batch()
        before = [self._batch() for _ in range(BEFORE)]
        self.began, self.parts = time.monotonic(), {}
        self.pool.want(2)
        after = [self._batch()]
        while len(after) < AFTER or len(self._placed()) != 2:
            after.append(self._batch())
        return Arrival(before, after, self.parts)

    def _batch(self) -> float:
        """Seconds of the next one."""
        from joinlib.scale.placement import placed

        while len(self.reports) == self.seen:
            self._wait()
        self.seen = len(self.reports)
        batch = self.reports[-1].batch
        while (done := self.job.last()) is None or done["batchId"] < batch:
            self._wait()
        self.chosen = placed(self.job.partitions, self._warm(), self.chosen)
        self.job.spread(self.job.partitions, self.chosen)
        if len(self._placed()) == 2:
            self.parts.setdefault("first task of a unit", time.monotonic() - self.began)
        took = float(done["durationMs"]["triggerExecution"]) / 1000
        line = f"batch {batch} took {took:.1f} s on {self._where()}"
        print(f"{time.monotonic() - self.began:6.1f} s  {line}", flush=True)
        return took

    def _wait(self) -> None:
        at = time.monotonic() - self.began
        assert at < PATIENCE_S + AFTER, "executors did not come or go"
        self.job.wait(0.1)
        for part, there in (("takes tasks", self.pool.ready()), ("takes units", self._warm())):
            if len(there) == 2:
                self.parts.setdefault(part, at)

    def _warm(self) -> list[str]:
        return self.pool.warm() if self.mode == "product" else self.pool.ready()

    def _where(self) -> dict[int, str]:
        """The executor of each partition."""
        return {r.unit % self.job.partitions: r.executor for r in self.reports[-1].receipts}

    def _placed(self) -> set[str]:
        return set(self._where().values())


def main(arrivals: int, mode: str) -> None:
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
            "spark.master": "local-cluster[2,1,1024]",
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
        with started(compiled(document, 2), reports.append, until_done=False, cores=2, conf=conf) as job:
            run = Run(job, reports, mode)
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
        main(int(sys.argv[1]) if sys.argv[1:] else 3, sys.argv[2] if sys.argv[2:] else "product")
    else:
        daemon()
