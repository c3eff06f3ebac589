"""One Spark session for all tests of a process: starting one costs longer than most tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from joinlib.spark import session
from tests.postgres.database import PASSWORD
from tests.spark.trial import CORES, Trial

ROOT = Path(__file__).parents[2]
_QUICK = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.level=error"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local, two cores, two state partitions; its workers find the tests' own classes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)  # what a worker may know, its JVM has known since it was started
        patch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path_factory.mktemp("indexes")))
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        )
        running = session.start(CORES, _QUICK)
        yield running
        running.stop()


@pytest.fixture
def trial(spark: SparkSession, tmp_path: Path) -> Trial:
    """An empty folder to run a spec in."""
    return Trial(tmp_path, spark)
