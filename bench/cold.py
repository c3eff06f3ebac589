"""What does a batch wait for when it meets a new executor? A job on one executor gets a second one, on this machine.

    python bench/cold.py [once | late | never]    rehearsed at once; after the batch in which it came; not at all

Prints when executors come and go, and for each batch how long it took, who is warm and where the state's partitions lie.
"""

import sys
import tempfile
import time
from pathlib import Path

from joinlib.spark import cluster
from joinlib.spark.compiled import compiled
from joinlib.spark.executors import Executors
from joinlib.spark.job import Report, started
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
BEFORE, AFTER = 5, 12  # batches


def main(mode: str) -> None:
    reports: list[Report] = []
    with tempfile.TemporaryDirectory() as folder:
        document = parse(SPEC, "cold.yaml", Path(folder))
        with started(compiled(document, 2), reports.append, until_done=False, cores=2, conf=CONF) as job:
            pool, placement, seen = Executors(job.spark, 2, 1), Placement(), 0
            pool.want(1)
            grown, began = 0.0, time.monotonic()
            there: list[str] = []
            while len(reports) < BEFORE + AFTER:
                job.wait(0.1)
                if len(reports) >= BEFORE and not grown:
                    pool.want(2)
                    grown = began = time.monotonic()
                if mode == "once":
                    pool.warm()
                if there != (there := pool.ready()):
                    print(f"{time.monotonic() - began:6.1f} s  executors {there}", flush=True)
                if len(reports) == seen:
                    continue
                seen = len(reports)
                warm = there if mode == "never" else pool.warm()
                placed = {r.unit % job.partitions: r.executor for r in reports[-1].receipts}
                placement = placement.after(warm, placed.values())
                pool.hold_for(placement.wait)
                took = (job.query.lastProgress or {}).get("durationMs", {}).get("triggerExecution", 0)
                line = f"batch {reports[-1].batch - 1} took {took / 1000:.1f} s; warm {warm}, placed {placed}"
                print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "once")
