"""A driver that is killed leaves a JVM behind, which might still commit: who comes next waits for its end."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from joinlib.checkpoint.lock import Lock
from joinlib.errors import NotReady
from tests.spark.faults import processes
from tests.spark.faults.scenario import Scenario

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
START_S = 12  # in which a run flows if nothing holds it back


@pytest.mark.parametrize("how", [{}, {"first": True, "partitions": None}])
def test_second_run_waits_for_the_jvm_of_the_first(
    how: dict[str, Any], job: Scenario, undisturbed: Callable[[str], Scenario]
) -> None:
    """The first JVM is frozen while its driver dies: the second run starts, and flows only when that JVM is gone.

    Also one that would do without Spark.
    """
    first = job.begin()
    first.until(batch=2)
    with pytest.raises(NotReady, match="in use by another run"):
        Lock(job.folder / "checkpoint")
    (jvm,) = processes.of_kind(first.session, "jvm")
    processes.freeze(jvm)
    first.kill("driver")
    second = job.begin(**how)
    time.sleep(START_S)
    assert not second.flowing
    processes.thaw(jvm)
    second.until(done=True)
    assert second.end() == 0

    job.check(like=job if how else undisturbed(job.kind))  # a task makes fewer files than several
