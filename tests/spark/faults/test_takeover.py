"""A driver that is killed leaves a JVM behind, which might still commit: who comes next waits for its end."""

import time
from collections.abc import Callable

import pytest

from joinlib.checkpoint.lock import Lock
from joinlib.errors import NotReady
from tests.spark.faults import processes
from tests.spark.faults.scenario import Scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
START_S = 12  # in which a run flows if nothing holds it back


def test_second_run_waits_for_the_jvm_of_the_first(
    job: Scenario, undisturbed: Callable[[str], Scenario]
) -> None:
    """The first JVM is frozen while its driver dies: the second run starts, and flows only when that JVM is gone."""
    first = job.begin()
    first.until(batch=2)
    with pytest.raises(NotReady, match="in use by another run"):
        Lock(job.folder / "checkpoint")
    (jvm,) = processes.of_kind(first.session, "jvm")
    processes.freeze(jvm)
    first.kill("driver")
    second = job.begin()
    time.sleep(START_S)
    assert not second.flowing
    processes.thaw(jvm)
    second.until(done=True)
    assert second.end() == 0

    job.check(like=undisturbed(job.kind))
