"""Another number of state partitions. Law: with it, at any time, interrupted or not, the answer is what it was without."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.repartition import repartition as command
from joinlib.errors import NotReady, SpecError
from joinlib.spark import batches
from joinlib.spark.compiled import Compiled
from joinlib.spark.job import Job, Report, opened
from joinlib.spark.lock import Lock
from tests.spark.faults import processes
from tests.spark.faults.scenario import QUERIES, Scenario, scenario
from tests.spark.trial import CORES, Trial, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SQL = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v"
INNER = SQL.replace("LEFT ", "")


def pour(trial: Trial, number: int) -> None:
    """One more file of each input."""
    for name in ("a", "b"):
        draw = random.Random(f"{name}{number}")
        trial.write(name, f"{number:03d}", [(draw.randrange(9), draw.randrange(50)) for _ in range(30)])


def inputs(trial: Trial) -> None:
    for name in ("a", "b"):
        trial.input(name, "k BIGINT, v BIGINT", maxFilesPerBatch=1, orderBy="name")


def repartition(trial: Trial, plan: Compiled, partitions: int) -> bool:
    with opened(plan, lambda _: None, cores=CORES, spark=trial.session()) as ready:
        return ready.repartition(partitions)


def partitions_of(plan: Compiled) -> int | None:
    return batches.partitions(plan.checkpoint / "spark")


def test_any_sequence_of_batches_and_repartitions(trial: Trial) -> None:
    """More, fewer, one, several in a row, the same again: the output is DuckDB's answer, and each batch comes once."""
    inputs(trial)
    plan = trial.compiled(INNER, join={"units": 8})
    assert not repartition(trial, plan, 4), "nothing was begun"
    for number, changes in enumerate([[4], [8, 1], [2, 2]]):
        pour(trial, number)
        trial.run_plan(plan)
        assert trial.output(INNER) == trial.expected(INNER)
        for partitions in changes:
            known = partitions_of(plan)
            assert repartition(trial, plan, partitions) == (partitions != known)
            assert partitions_of(plan) == partitions


def test_a_query_that_runs_goes_on(trial: Trial) -> None:
    """In one session, between two batches; an outer join's rows come out at the end as ever."""
    inputs(trial)
    pour(trial, 0)
    plan = trial.compiled(SQL, join={"units": 8})

    def act(job: Job, reports: list[Report]) -> None:
        until(job, lambda: bool(reports))
        assert job.partitions == 2
        for number, partitions in enumerate((8, 4), start=1):
            job.repartition(partitions)
            assert job.partitions == partitions_of(plan) == partitions
            before = len(reports)
            pour(trial, number)
            until(job, lambda before=before: len(reports) > before)  # type: ignore[misc]

    trial.watch(plan, act)
    trial.run_plan(plan)
    assert trial.output(SQL) == trial.expected(SQL)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Scenario]:
    """A full join, as a process that can be killed."""
    with scenario(tmp_path / "job", "full") as made:
        yield made


def commanded(job: Scenario, partitions: int) -> "subprocess.Popen[str]":
    """`streamjoin repartition`, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "jobs.cli", "repartition", "spec.yaml", f"--partitions={partitions}"],
        cwd=job.folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "STREAMJOIN_LOCAL_DIR": str(job.folder / "indexes"),
            "TMPDIR": str(job.folder),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )


def killed_in_the_middle(job: Scenario, partitions: int) -> None:
    """All of its processes die once it has begun to move the state."""
    spark, process = job.folder / "checkpoint" / "spark", commanded(job, partitions)
    end = time.monotonic() + 200
    while batches.half_repartitioned(spark) is None:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.002)
    for each in processes.of_session(process.pid):
        processes.kill(each.pid)
    process.wait(20)
    assert not processes.gone(process.pid)
    assert batches.half_repartitioned(spark) == partitions


def test_killed_before_and_in_the_middle(job: Scenario) -> None:
    """A batch that was published but not committed is finished first; a repartition half done by whoever comes next."""
    spark = job.folder / "checkpoint" / "spark"
    assert job.begin("published:3").end() == -9
    assert batches.cut_off(spark) == 3
    killed_in_the_middle(job, 4)
    process = commanded(job, 1)  # it finishes that one, then its own
    said, _ = process.communicate(timeout=300)
    assert (process.returncode, batches.partitions(spark)) == (0, 1), said
    assert "-> 1 state partitions" in said
    killed_in_the_middle(job, 2)
    job.finish()  # so does a run
    assert batches.partitions(spark) == 2
    assert job.trial.output(QUERIES["full"]) == job.trial.expected(QUERIES["full"])


def test_refusals(tmp_path: Path) -> None:
    """Nothing is touched, and Spark is not started: a number that does not fit, no batch yet, a run that lives."""
    trial = Trial(tmp_path, None)  # type: ignore[arg-type]
    inputs(trial)
    document = trial.spec(INNER, join={"units": 8})
    for number in (0, 3, 16):
        with pytest.raises(SpecError, match="power of two from 1 to"):
            command(document, number)
    with pytest.raises(SpecError, match="no finished batch"):
        command(document, 4)
    assert not (tmp_path / "checkpoint").exists()
    (tmp_path / "checkpoint" / "spark" / "commits").mkdir(parents=True)
    (tmp_path / "checkpoint" / "spark" / "commits" / "0").touch()
    lock = Lock(tmp_path / "checkpoint")
    with pytest.raises(NotReady, match="in use by another run"):
        command(document, 4)
    lock.release()
