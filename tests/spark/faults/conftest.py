"""What fault tests share: the undisturbed runs, and the certainty that nothing runs on."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.faults.scenario import Scenario, scenario


@pytest.fixture(scope="session", autouse=True)
def _session(spark: SparkSession) -> Iterator[None]:
    """Jobs are finished in one session, which saves each the start of Spark."""
    Scenario.session = spark
    yield
    Scenario.session = None


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Scenario]]:
    """By kind of join: the same job, never disturbed."""
    with ExitStack() as stack:

        @cache
        def made(kind: str) -> Scenario:
            job = stack.enter_context(scenario(tmp_path_factory.mktemp("undisturbed") / kind, kind))
            job.finish()
            job.check(job)
            return job

        yield made


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scenario]:
    """A job to disturb; a full join unless the test is parametrised."""
    with scenario(tmp_path / "job", getattr(request, "param", "full")) as made:
        yield made
