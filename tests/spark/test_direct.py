"""Batches that follow each other do without Spark, whatever fails does not; the answer is the same."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib.checkpoint import batches
from joinlib.compiled import Compiled
from joinlib.direct.report import Report
from joinlib.errors import InputError
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob, started
from tests.spark.faults import processes
from tests.spark.trial import CORES, Trial, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SQL = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a JOIN b ON a.k = b.k"
OUTER = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k"
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "paths": (
        "SELECT a.k AS k, b.v AS v, c.v AS w FROM a JOIN b ON a.k = b.k JOIN a c ON c.v = b.v",
        {"join": {"units": 4, "strategy": "paths"}},
    ),
    "biclique": ("SELECT a.k AS k, b.v AS w FROM a JOIN b ON a.k % 3 = b.k", {"join": {"units": 4, "strategy": "biclique"}}),
    "band": ("SELECT a.k AS k, b.v AS w FROM a JOIN b ON a.k BETWEEN b.k - 1 AND b.k + 1", {}),
    "groups over a table": (
        "SELECT t.name AS name, count(*) AS n, sum(b.v) AS v FROM a JOIN b ON a.k = b.k LEFT JOIN t ON a.v % 7 = t.id GROUP BY t.name",
        {},
    ),
    "full, and conditions": ("SELECT a.k AS k, b.v AS w FROM a FULL JOIN b ON a.k = b.k + 7 AND a.v > 20", {}),
    "not exists": ("SELECT a.k AS k, a.v AS v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k + 7)", {}),
}  # fmt: skip
SMALL, EACH = 60, 10  # rows of a small batch at most, of a file


class Pouring:
    """Files of the two inputs, one after the other; each is read in slices of a few rows."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.count, self.rows = trial, 0, 0
        for name in ("a", "b"):
            trial.input(name, "k BIGINT, v BIGINT", orderBy="name")

    def pour(self, slices: int = 1) -> None:
        """One more of each, with so many slices."""
        rows = range(self.rows, self.rows + slices * EACH)
        table = pa.table({"k": pa.array(rows, pa.int64()), "v": pa.array(rows, pa.int64())})
        for name in ("a", "b"):
            aside = self.trial.folder / f"{name}.aside"
            pq.write_table(table, aside, row_group_size=EACH)
            aside.rename(self.trial.folder / name / f"{self.count:05d}.parquet")
        self.count, self.rows = self.count + 1, self.rows + len(rows)

    def until_read(self, job: RunningJob) -> None:
        """All rows are joined."""
        until(job, lambda: sum(self.trial.output(SQL).values()) == self.rows)


@contextmanager
def running(trial: Trial, plan: Compiled) -> Iterator[tuple[RunningJob, list[Report]]]:
    """A run without an end, in which small batches are one task."""
    reports: list[Report] = []
    with started(plan, reports.append, until_done=False, cores=CORES, spark=trial.session()) as job:
        yield job, reports


def tuned(trial: Trial, sql: str = SQL, small: int = SMALL, **more: Any) -> Compiled:
    return trial.compiled(sql, tuning=Tuning(small_rows=small, direct_after=2), **more)


def until_direct(job: RunningJob, pouring: Pouring) -> None:
    """So many batches come that Spark is left."""
    while not job.direct:
        pouring.pour()
        pouring.until_read(job)


def test_batches_do_without_spark_but_where_one_fails(trial: Trial) -> None:
    """To and fro, small ones and others. Numbers and figures go on throughout."""
    pouring, plan = Pouring(trial), tuned(trial)
    with running(trial, plan) as (job, reports):
        pouring.pour()
        pouring.until_read(job)
        assert not job.direct
        until_direct(job, pouring)
        pouring.pour()
        pouring.until_read(job)
        assert len(servers()) == 1, "small batches need one"
        before = len(reports)
        pouring.pour(10)
        pouring.until_read(job)
        assert job.direct
        assert max(r.rows_in for r in reports[before:]) > SMALL
        assert len(servers()) == CORES
        assert job.lag()["a"]["rows"] == 0
        processes.kill(servers()[-1])
        pouring.pour(10)
        pouring.until_read(job)
        assert not job.direct
        until_direct(job, pouring)
        told = job.progress(-1)
        last = reports[-1].batch
    assert [r.batch for r in reports] == list(range(last + 1))
    assert [p["batchId"] for p in told] == list(range(last + 1))[-len(told) :]
    steps = {"addBatch", "commitOffsets", "triggerExecution"}  # one that Spark runs again was composed before
    assert all(steps <= p["durationMs"].keys() for p in told)
    assert batches.done(trial.folder / "checkpoint" / "spark") == last
    assert trial.output(SQL) == trial.expected(SQL)


@pytest.mark.parametrize("small", [SMALL, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_query(trial: Trial, kind: str, small: int) -> None:
    """Some batches of Spark, some without it, in one process or in several, and those of a run that closes the inputs."""
    pouring = Pouring(trial)
    trial.input("t", "id BIGINT, name STRING", role="table")
    trial.write("t", "t", [(n, f"n{n % 3}") for n in range(5)])
    sql, more = KINDS[kind]
    plan = tuned(trial, sql, small, **more)
    with running(trial, plan) as (job, reports):
        while not job.direct or len(reports) < 8:
            pouring.pour()
            before = len(reports)
            until(job, lambda before=before: len(reports) > before and not job.busy)
    pouring.pour()
    trial.run_plan(plan)
    assert trial.output(sql) == trial.expected(sql)


def test_a_run_that_ends_while_it_does_without_spark(trial: Trial) -> None:
    """It ends between two batches; the next run goes on, and closes an outer join."""
    pouring, plan = Pouring(trial), tuned(trial, OUTER)
    with running(trial, plan) as (job, _):
        until_direct(job, pouring)
    assert batches.cut_off(trial.folder / "checkpoint" / "spark") is None
    trial.write("a", "99999", [(-1, -1)])
    trial.run_plan(plan)
    assert trial.output(OUTER) == trial.expected(OUTER)


def test_an_error_is_told_as_by_spark(trial: Trial) -> None:
    """A file that cannot be read ends the run, whoever has met it first."""
    pouring, plan = Pouring(trial), tuned(trial)
    with running(trial, plan) as (job, _):
        until_direct(job, pouring)
        aside = trial.folder / "aside"
        aside.write_bytes(b"PAR1 this is no file of rows PAR1")
        aside.rename(trial.folder / "a" / "99999.parquet")
        with pytest.raises(InputError, match=r"99999\.parquet"):
            until(job, lambda: False)


def test_the_process_ends_with_the_run(trial: Trial) -> None:
    """Nothing of it is left."""
    pouring, plan = Pouring(trial), tuned(trial)
    with running(trial, plan) as (job, _):
        until_direct(job, pouring)
        pouring.pour()
        pouring.until_read(job)
        assert servers()
    assert not servers()


def servers() -> list[int]:
    """The processes that run batches without Spark, and were forked for this process."""
    found = processes.of_session(os.getsid(0))
    ours = {p.pid for p in found if p.parent == os.getpid()}
    return [
        p.pid for p in found if (p.parent in ours or p.parent == os.getpid()) and processes.runs_directly(p)
    ]
