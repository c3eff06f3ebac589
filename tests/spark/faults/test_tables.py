"""Lookups come last in a plan, so whatever dies in between, the rows that come out are those of SQL: also the database."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.postgres.database import PASSWORD, Database
from tests.spark.faults.scenario import Scenario, Table, scenario
from tests.spark.faults.test_points import RETRYING
from tests.spark.trial import table_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CUSTOMERS = [(k, f"n{k}") for k in range(9)] + [
    (3, "again"),
    (None, "nobody"),
]  # two of eleven keys are not there
REGIONS = [("ape", "a"), ("bee", "b"), ("bee", "c")]
Made = Callable[[str], Scenario]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database() as db, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        db.fill("customers", table_of("k BIGINT, name STRING", CUSTOMERS))
        db.fill("regions", table_of("s STRING, label STRING", REGIONS))
        yield db


@pytest.fixture
def made(database: Database, tmp_path: Path) -> Iterator[Made]:
    """A job by its kind: one table asked anew in each batch with hardly a budget, one kept whole and loaded all the time."""
    jobs: list[Scenario] = []
    asked = {**database.fields, "cache": "incremental", "refresh": "1ms", "budget": "100"}
    tables = {
        "customers": Table("k BIGINT, name STRING", CUSTOMERS, asked),
        "regions": Table(
            "s STRING, label STRING", REGIONS, {**database.fields, "cache": "full", "refresh": "50ms"}
        ),
    }

    def make(kind: str) -> Scenario:
        with scenario(tmp_path / str(len(jobs)), kind, tables=tables) as job:
            jobs.append(job)
        return job

    yield make
    for job in jobs:
        job.close()


@pytest.mark.parametrize("kind", ["tables", "asked"])
def test_every_point_with_tables(made: Made, database: Database, kind: str) -> None:
    """Workers, the planning process and drivers die, and the database in mid-run; output and state are those of a calm run.

    Tables that are asked for by another key than that of the join have a stage of their own.
    """
    calm, job = made(kind), made(kind)
    calm.finish()
    planning = job.begin("loaded:2")
    assert planning.end() == 1
    assert len(planning.errors) == 1
    workers = job.begin("cached:1", "segment:3", "joined:4", "collected:6", conf=RETRYING)
    workers.until(batch=4)
    database.crash()
    time.sleep(1)
    database.start()
    assert workers.end() == -9
    assert not workers.errors, (
        "the task is run again in the same batch, and a database that is away is waited for"
    )
    assert job.begin("published:7").end() == -9
    job.finish()

    job.check(like=calm)


def test_a_stream_that_only_meets_tables(made: Made, database: Database) -> None:
    """Its rows go where rules for hot keys say, which are in the offsets; nothing is stored of it."""
    job = made("routed")
    assert job.begin("cached:1", "joined:2", "collected:4", conf=RETRYING).end() == -9
    run = job.begin()
    run.until(batch=5)
    database.crash()
    run.kill_all()
    run.end()
    database.start()
    job.finish()

    job.check(like=job)
