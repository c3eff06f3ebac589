"""A spec's run in this process, to the end of its inputs, and when each batch was committed."""

import time
from dataclasses import dataclass
from pathlib import Path

from joinlib.spark.compiled import compiled
from joinlib.spark.job import Report, default_cores, started
from joinlib.spec import load


@dataclass(frozen=True)
class Timed:
    """Times are seconds since the epoch."""

    begun: float  # the query's start
    ended: float
    reports: list[tuple[float, Report]]  # when a batch was committed, what it did
    seconds: dict[int, float]  # Spark's own time for each batch

    @property
    def results(self) -> int:
        return sum(r.rows_out for _, r in self.reports)


def run_to_end(file: Path) -> Timed:
    """On all processors that this process may use."""
    cores = default_cores()
    reports: list[tuple[float, Report]] = []
    with started(
        compiled(load(file), cores), lambda r: reports.append((time.time(), r)), until_done=True, cores=cores
    ) as job:
        begun = time.time()
        while not job.wait(0.05):
            pass
        ended = time.time()
        took = {p["batchId"]: p["durationMs"]["triggerExecution"] / 1000 for p in job.query.recentProgress}
    return Timed(begun, ended, reports, took)
