"""Other partitions, on other executors. Law: in any batch, interrupted or not, the answer is what it would be without."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from joinlib.errors import SpecError
from joinlib.spark import batches
from joinlib.spark.compiled import Compiled
from joinlib.spark.job import Job, Report
from tests.spark.faults.scenario import QUERIES, Scenario, scenario
from tests.spark.trial import Trial, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SQL = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v"
INNER = SQL.replace("LEFT ", "")
UNITS = {"units": 8}


def pour(trial: Trial, number: int) -> None:
    """One more file of each input."""
    for name in ("a", "b"):
        draw = random.Random(f"{name}{number}")
        trial.write(name, f"{number:03d}", [(draw.randrange(9), draw.randrange(50)) for _ in range(30)])


def inputs(trial: Trial) -> None:
    for name in ("a", "b"):
        trial.input(name, "k BIGINT, v BIGINT", maxFilesPerBatch=1, orderBy="name")


def partitions_of(plan: Compiled) -> int | None:
    return batches.partitions(plan.checkpoint / "spark")


def test_every_run_has_its_own_number(trial: Trial) -> None:
    """More, fewer, one, as many as units, the same again: the output is DuckDB's answer."""
    inputs(trial)
    plan = trial.compiled(INNER, join=UNITS)
    assert partitions_of(plan) is None
    for number, partitions in enumerate((2, 4, 8, 1, 1, 2)):
        pour(trial, number)
        trial.run_plan(plan, partitions)
        assert partitions_of(plan) == partitions
        assert trial.output(INNER) == trial.expected(INNER)


def test_a_query_that_runs_goes_on(trial: Trial) -> None:
    """From one batch to the next, in one query; an outer join's rows come out at the end as ever."""
    inputs(trial)
    pour(trial, 0)
    plan = trial.compiled(SQL, join=UNITS)

    def act(job: Job, reports: list[Report]) -> None:
        until(job, lambda: bool(reports))
        query = job.query.runId
        for number, partitions in enumerate((8, 1, 4), start=1):
            job.spread(partitions, [])
            before = len(reports)
            pour(trial, number)
            until(job, lambda before=before: len(reports) > before)  # type: ignore[misc]
            assert job.partitions == partitions_of(plan) == partitions
        assert job.query.runId == query
        with pytest.raises(SpecError, match="power of two from 1 to"):
            job.spread(3, [])

    trial.watch(plan, act)
    trial.run_plan(plan)
    assert trial.output(SQL) == trial.expected(SQL)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Scenario]:
    """A full join, as a process that can be killed."""
    with scenario(tmp_path / "job", "full") as made:
        yield made


def test_killed_and_gone_on_with_others(job: Scenario) -> None:
    """A batch that was cut off runs again as it was spread; the next ones as is asked for."""
    spark = job.folder / "checkpoint" / "spark"
    assert job.begin("published:3", partitions=1).end() == -9
    assert (batches.cut_off(spark), batches.partitions(spark)) == (3, 1)
    assert job.begin("joined:3", partitions=4).end() == 1
    assert (batches.cut_off(spark), batches.partitions(spark)) == (3, 1)
    job.finish(partitions=4)
    assert batches.partitions(spark) == 4
    assert job.trial.output(QUERIES["full"]) == job.trial.expected(QUERIES["full"])


def test_partitions_lie_where_they_are_told_to(job: Scenario) -> None:
    """On a cluster of Spark's own in one machine, whose two executors swap what they have; one that is not there is no harm."""
    swaps = {0: ["0", "1"], 2: ["1", "0"], 4: ["1", "1"], 6: ["7", "0"]}
    conf = {"spark.master": "local-cluster[2,1,1024]", "spark.locality.wait": "10s"}
    run = job.begin(conf=conf, spreads={str(batch): executors for batch, executors in swaps.items()})
    run.until(done=True)
    assert run.end() == 0
    joined = {
        line["batch"]: {r["unit"] % 2: r["executor"] for r in line["receipts"]}
        for line in run.lines
        if "batch" in line
    }
    assert len(joined) > 5
    for told, executors in swaps.items():
        for batch in (told + 1, told + 2):
            if batch in joined and told < 6:
                assert joined[batch] == dict(enumerate(executors))
    assert all(found[1] == "0" for batch, found in joined.items() if batch > 6)
    assert job.trial.output(QUERIES["full"]) == job.trial.expected(QUERIES["full"])
