"""What all tests share: Hypothesis tries few, small examples and does not time them on a busy machine;
in CI it tries the same ones every time. `--quick` skips what takes long. At its end a run says what it did not run, and why.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from joinlib.worker import Worker, using
from tests.schedule import Scheduling, by_length

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.trial import Trial

settings.register_profile(
    "quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("brief", parent=settings.get_profile("quick"), max_examples=15)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=2000)
settings.register_profile("ci", parent=settings.get_profile("quick"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "quick")


_LONG = ("slow", "spark", "cluster")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help=f"skip the tests marked {', '.join(_LONG)}, and try few examples of each law",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before the tests are collected: `@settings` takes what it does not say from the profile of the moment.

    And before there are workers, which inherit the seed of faults.
    """
    os.environ.setdefault("STREAMJOIN_FAULT_SEED", str(random.randrange(10**6)))
    if config.option.quick:
        settings.load_profile("brief")


def pytest_report_header() -> str:
    return f"faults: STREAMJOIN_FAULT_SEED={os.environ['STREAMJOIN_FAULT_SEED']}"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """`--dist loadfile` is ours: see `tests.schedule`."""
    return Scheduling(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(trylast=True)  # after the folders have said which of theirs are marked
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files come first. Tests marked `cluster` need one; `--quick` leaves all long ones out."""
    items.sort(key=lambda item: by_length(item.nodeid))
    for item in items:
        long = [mark for mark in _LONG if item.get_closest_marker(mark)]
        if config.option.quick and long:
            item.add_marker(pytest.mark.skip(reason=f"marked {long[0]}; `make test` runs it"))
        elif "cluster" in long and not os.environ.get("KUBECONFIG"):
            item.add_marker(pytest.mark.skip(reason="KUBECONFIG names no cluster; `make e2e` brings one up"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """By folder and reason; into the file STREAMJOIN_NOT_RUN as well, for whoever runs pytest more than once."""
    reports = terminalreporter.stats.get("skipped", [])
    counts = Counter((Path(r.nodeid.partition("::")[0]).parent, _reason(r)) for r in reports)
    lines = [f"{folder}: {count}: {reason}" for (folder, reason), count in sorted(counts.items())]
    if lines:
        terminalreporter.section("not run")
        for line in lines:
            terminalreporter.line(line)
    if into := os.environ.get("STREAMJOIN_NOT_RUN"):
        with open(into, "a") as file:
            file.writelines(f"{line}\n" for line in lines)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(told.removeprefix("Skipped: ").split())


@pytest.fixture(autouse=True)
def _a_worker() -> Iterator[None]:
    """Each test is a worker of its own: what it has opened is closed with it."""
    with using(Worker()) as worker:
        yield
    worker.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """One for all tests of a process, since starting one costs longer than most tests.

    Local, two cores, two state partitions; its workers find the tests' own classes. Its JVM knows what was in the
    environment when it began, so there is no second session for which that would be something else.
    """
    from joinlib.spark import session  # imported here: most tests do without Spark
    from tests.postgres.database import PASSWORD
    from tests.spark.trial import CORES

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        patch.setenv("STREAMJOIN_LOCAL_DIR", str(tmp_path_factory.mktemp("indexes")))
        python = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(python))
        running = session.start(CORES)
        yield running
        running.stop()


@pytest.fixture
def trial(spark: "SparkSession", tmp_path: Path) -> "Trial":
    """An empty folder to run a spec in."""
    from tests.spark.trial import Trial

    return Trial(tmp_path, spark)
