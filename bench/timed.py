"""A spec's run in this process, to the end of its inputs or of its time, and when each batch was committed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from joinlib.spark.boot import prefork

if TYPE_CHECKING:
    from joinlib.direct.report import Report


@dataclass(frozen=True)
class Timed:
    """Times are seconds since the epoch."""

    begun: float  # the query's start
    ended: float
    reports: "list[tuple[float, Report]]"  # when a batch was committed, what it did
    seconds: dict[int, float]  # Spark's own time for each batch
    stopped: bool  # it was not at its end yet

    @property
    def results(self) -> int:
        return sum(r.rows_out for _, r in self.reports)


def run_to_end(
    file: Path,
    limit: float = inf,
    conf: Mapping[str, str] | None = None,
    on_batch: "Callable[[Report], None]" = lambda _: None,
    cores: int | None = None,
) -> Timed:
    """On all processors that this process may use.

    `limit`: seconds until the query is stopped; conf: of Spark; cores: as if there were so many.
    """
    prefork.begin()  # as the command does: while it loads what tasks run, this process loads the planner
    from jobs.flow import default_cores
    from joinlib.compiled import compiled
    from joinlib.spark.job import started
    from joinlib.spec import load

    cores = cores or default_cores()
    reports: list[tuple[float, Report]] = []

    def heard(report: "Report") -> None:
        reports.append((time.time(), report))
        on_batch(report)

    took: dict[int, float] = {}
    with started(compiled(load(file), cores), heard, until_done=True, cores=cores, conf=conf) as job:
        begun, done = time.time(), False
        while not done and time.time() < begun + limit:
            done = job.wait(0.05)
            for told in job.progress(max(took, default=-1)):
                took[told["batchId"]] = told["durationMs"]["triggerExecution"] / 1000
        ended = time.time()
        counted = [(at, r) for at, r in reports if done or r.batch in took]
    return Timed(begun, ended, counted, took, not done)
