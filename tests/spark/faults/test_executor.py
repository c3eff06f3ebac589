"""Executors and their workers die; Spark runs their tasks again in the same batch, on what the dead have left."""

from collections.abc import Callable

import pytest

from tests.spark.executors import local_cluster
from tests.spark.faults.scenario import Scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CLUSTER = local_cluster(2)


def test_executor_and_worker_die(job: Scenario, undisturbed: Callable[[str], Scenario]) -> None:
    """The run goes on by itself: indexes that are ahead or half changed are built anew."""
    run = job.begin("index:1", "joined:2", conf=CLUSTER)
    run.until(batch=3)
    assert run.kill("executor")
    run.until(batch=5)
    assert run.kill("worker")
    run.until(done=True)
    assert run.end() == 0

    assert not run.errors
    job.check(like=undisturbed(job.kind))


def test_idle_workers_die(job: Scenario) -> None:
    """Spark ends workers that were idle for a minute: no index is built anew, as those that come next find them as they were."""
    job.tuning = {"spans": 1}
    run = job.begin(idle_kills=[2, 4])
    run.until(done=True)
    assert run.end() == 0

    batches = [line for line in run.lines if "batch" in line]
    assert [bool(line["killed"]) for line in batches[:6]] == [False, False, True, False, True, False]
    before, *after = [line["indexes"] for line in batches[2:6]]
    for later in after:
        alive = before.keys() & later.keys()  # others have expired
        assert alive
        assert {name: before[name] for name in alive} == {name: later[name] for name in alive}
    job.check(like=job)
