"""What does a batch wait for when it meets a new executor? A job on one executor gets a second one, some times.

    python bench/cold.py [ARRIVALS [warm] [rehearsed]]

warm         an executor takes tasks only when it is warm (`WarmExecutor.java`)
rehearsed    a query of its own is run on executors that have come, before units move there

Prints when executors come and go, for each batch how long it took and where the state's partitions lie, and at the end, for
each arrival, the median batch before it and the largest ones after it.
"""

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from joinlib.spark import cluster, home, jar
from joinlib.spark.compiled import compiled
from joinlib.spark.executors import Executors
from joinlib.spark.job import Job, Report, started
from joinlib.spark.placement import Placement
from joinlib.spec import parse

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
CONF = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": " ".join(cluster.EXECUTOR_JAVA),
    "spark.locality.wait": "10s",
    "spark.decommission.enabled": "true",
}
BEFORE, AFTER = 8, 14  # batches


def main(arrivals: int, warm: bool, rehearsed: bool) -> None:
    reports: list[Report] = []
    found: list[str] = []
    home.use()
    conf = {**CONF, **(jar.warming() if warm else {})}
    with tempfile.TemporaryDirectory() as folder:
        document = parse(SPEC, "cold.yaml", Path(folder))
        with started(compiled(document, 2), reports.append, until_done=False, cores=2, conf=conf) as job:
            pool, follower = Executors(job.spark, 2, 1), Follower()
            for _ in range(arrivals):
                before = _batches(job, pool, follower, reports, 1, BEFORE, rehearsed)
                after = _batches(job, pool, follower, reports, 2, AFTER, rehearsed)
                largest = sorted(after, reverse=True)[:3]
                found.append(
                    f"{statistics.median(before[2:]):.1f} s -> {', '.join(f'{s:.1f}' for s in largest)} s"
                )
    print("warm" if warm else "cold", "rehearsed" if rehearsed else "", *found, sep="; ", flush=True)


@dataclass
class Follower:
    """Where units lie and may lie."""

    placement: Placement = field(default_factory=Placement)
    there: list[str] = field(default_factory=list)


def _batches(
    job: Job,
    pool: Executors,
    follower: Follower,
    reports: list[Report],
    total: int,
    count: int,
    rehearsed: bool,
) -> list[float]:
    """Seconds of the next batches with so many executors."""
    pool.want(total)
    began, seen, last = time.monotonic(), len(reports), len(reports) + count
    seconds: list[float] = []
    while len(reports) < last:
        job.wait(0.1)
        warm = pool.warm() if rehearsed else pool.ready()
        if follower.there != (there := pool.ready()):
            print(f"{time.monotonic() - began:6.1f} s  executors {there}", flush=True)
            follower.there = there
        if len(reports) == seen:
            continue
        seen = len(reports)
        placed = {r.unit % job.partitions: r.executor for r in reports[-1].receipts}
        follower.placement = follower.placement.after(warm, placed.values())
        pool.hold_for(follower.placement.wait)
        took = (job.query.lastProgress or {}).get("durationMs", {}).get("triggerExecution", 0) / 1000
        seconds.append(took)
        line = f"batch {reports[-1].batch - 1} took {took:.1f} s; warm {warm}, placed {placed}"
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)
    return seconds


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 3, "warm" in sys.argv, "rehearsed" in sys.argv)
