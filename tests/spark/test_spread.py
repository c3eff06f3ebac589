"""Other partitions, on other executors. Law: in any batch, interrupted or not, the answer is what it would be without."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from joinlib.checkpoint import batches
from joinlib.compiled import Compiled
from joinlib.direct.report import Report
from joinlib.errors import SpecError
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob
from tests.spark.executors import local_cluster
from tests.spark.faults.scenario import QUERIES, Scenario, scenario
from tests.spark.trial import Trial, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SQL = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v"
INNER = SQL.replace("LEFT ", "")
UNITS = {"units": 8}
ROOT = Path(__file__).parents[2]


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
    with pytest.raises(SpecError, match="power of two from 1 to"):
        trial.run_plan(plan, 16)


def test_a_query_that_runs_goes_on(trial: Trial) -> None:
    """From one batch to the next, in one query; an outer join's rows come out at the end as ever."""
    inputs(trial)
    pour(trial, 0)
    plan = trial.compiled(SQL, tuning=Tuning(small_rows=-1), join=UNITS)

    def act(job: RunningJob, reports: list[Report]) -> None:
        until(job, lambda: bool(reports))
        query = job.query.runId
        for number, (partitions, readers) in enumerate([(8, ()), (1, ("driver",)), (4, ("gone",))], start=1):
            job.spread(partitions, [], readers)
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


_ASK = """
import json, os, re, sys
from joinlib.spark import session
from joinlib.spark.boot import home
from joinlib.spark.rehearsal import rehearse
from joinlib.spark.spread import Spread

home.use()
conf = {**json.loads(sys.argv[1]), "spark.executor.memory": "512m", "spark.locality.wait": "10s"}
spark = session.start(1, conf)

def executor(batches):
    import pyarrow as pa
    from pyspark import TaskContext
    told = re.search("executorId=([0-9]+)", os.environ["SPARK_LOG_URL_STDOUT"])[1]
    for batch in batches: pass
    yield pa.record_batch([[TaskContext.get().partitionId()], [told]], ["id", "executor"])

def where(*executors):
    rows = spark.range(0, 100, 1, 4).repartition(len(executors), "id")
    found = Spread(len(executors), executors).place(rows).mapInArrow(executor, "id BIGINT, executor STRING").collect()
    return [row.executor for row in sorted(found)]

def reading(*executors):
    rows = Spread(8, (), executors).reading(spark.range(0, 100, 1, 4))
    return [row.executor for row in sorted(rows.mapInArrow(executor, "id BIGINT, executor STRING").collect())]

def tasks():
    there = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    return {one.id(): one.totalTasks() for one in map(there.apply, range(there.size()))}

where("0", "1")
print(json.dumps([where("0", "1", "0", "1"), where("1", "0", "0", "0"), where("1", "1"), where("1", "9")[:1]]))
print(json.dumps([reading("1"), reading("1", "0"), len(reading("9"))]))
before = tasks()
rehearse(spark, ["1"], 2)
print(json.dumps({name: count - before[name] for name, count in tasks().items()}))
spark.stop()
"""


def test_tasks_run_where_they_are_told_to(tmp_path: Path) -> None:
    """On a cluster of Spark's own in one machine, even if others are free: those that join, those that read and those that
    rehearse; an executor that is gone is not waited for.
    """
    variables = {"STREAMJOIN_LOCAL_DIR": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _ASK, json.dumps(local_cluster(2, cores=2))],
        env={**os.environ, **variables},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    joined, read, rehearsed = map(json.loads, done.stdout.splitlines()[-3:])
    assert joined == [["0", "1", "0", "1"], ["1", "0", "0", "0"], ["1", "1"], ["1"]]
    assert read == [["1", "1", "1", "1"], ["1", "0", "1", "0"], 4]
    assert rehearsed == {"driver": 0, "0": 0, "1": 4}, "others wait for those that have just come"
