"""What is wrong with a job's pods?

Named with the field and the fix, in words that stay while the trouble lasts.
"""

from typing import Any

import pytest
from joinop import diagnosis
from joinop.config import Config
from joinop.decide import ObservedState, decide
from joinop.names import Object

from tests.deploy.operator.objects import AT, driver_pod, executor_pod, running, stream_join


def container(**state: Any) -> Object:
    return {"name": "driver", "image": "streamjoin:1", "ready": False, **state}


def ended(code: int, reason: str = "Error", message: str = "", *, last: bool = False) -> Object:
    terminated = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}}
    return container(state=waiting, lastState=terminated) if last else container(state=terminated)


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (container(state={"waiting": {"reason": "ImagePullBackOff"}}), "ImagePull", "image streamjoin:1 cannot be pulled; check spec.image"),
        (container(state={"waiting": {"reason": "ErrImagePull"}}), "ImagePull", "image streamjoin:1 cannot be pulled; check spec.image"),
        (container(state={"waiting": {"reason": "CreateContainerError", "message": "boom"}}), "CreateContainerError", "boom"),
        (ended(137, "OOMKilled"), "OutOfMemory", "raise spec.driver.memory"),
        (ended(2, message="orders: no such folder\n"), "DriverRefused", "orders: no such folder"),
        (ended(2, message="bad units", last=True), "DriverRefused", "bad units"),
        (ended(1, last=True), "DriverFailed", "ended with code 1"),
    ],
)  # fmt: skip
def test_driver(status: Object, reason: str, message: str) -> None:
    """Each way in which a driver's container can fail."""
    found = diagnosis.driver([driver_pod(ready=False, containerStatuses=[status])])

    assert found is not None
    assert (found.reason, message in found.message) == (reason, True)


def test_user_mistake_is_failed() -> None:
    """A driver that refused the spec makes the job Failed: only another spec can help."""
    pod = driver_pod(ready=False, containerStatuses=[ended(2, message="bad units", last=True)])
    status = decide(
        ObservedState(stream_join(), {}, pods=(pod,), claims={"shared": True}, at=AT), Config()
    ).status

    assert (status["phase"], status["message"]) == ("Failed", "bad units")


def test_query_failed() -> None:
    """What the driver says of itself counts too."""
    scrape = running(phase="Failed", message="state of unit 3 is damaged")
    status = decide(
        ObservedState(
            stream_join(), {}, pods=(driver_pod(ready=False),), claims={"shared": True}, scrape=scrape
        ),
        Config(),
    ).status

    assert (status["phase"], status["message"]) == ("Failed", "state of unit 3 is damaged")


def test_recovered() -> None:
    """A container that works again has no trouble, whatever it died of before."""
    status = {
        "name": "driver",
        "ready": True,
        "state": {"running": {}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    }

    assert diagnosis.driver([driver_pod(containerStatuses=[status])]) is None


def test_unschedulable() -> None:
    """An impossible request shows with the scheduler's words."""
    conditions = [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes: Insufficient memory",
        }
    ]
    found = diagnosis.driver([driver_pod(ready=False, conditions=conditions)])

    assert found is not None
    assert "Insufficient memory; ask for less (cpuRequest and memory in spec.driver" in found.message


def test_evicted() -> None:
    """A pod that its node ended, with no container status left, is noticed."""
    found = diagnosis.driver(
        [driver_pod(phase="Failed", reason="Evicted", message="disk pressure", conditions=[])]
    )

    assert found is not None
    assert (found.reason, "disk pressure" in found.message) == ("Evicted", True)


def test_executors() -> None:
    """The trouble that most executors have, in the same words however many have it; those that leave are no trouble."""
    oom = {"containerStatuses": [ended(137, "OOMKilled")]}
    killed = {"containerStatuses": [ended(137)]}
    found = diagnosis.executors(
        [executor_pod(1, **oom), executor_pod(2, **oom), executor_pod(3, **killed), executor_pod(4)]
    )

    assert found is not None
    assert found.message == "the executor needed more memory than it has; raise spec.executors.memory"
    assert diagnosis.executors([executor_pod(1, **oom)]) == found
    assert diagnosis.executors([executor_pod(3, **killed)]) is None


def test_leaving_pods_are_no_trouble() -> None:
    """A terminating pod is ignored."""
    pod = driver_pod(containerStatuses=[ended(1)])
    pod["metadata"]["deletionTimestamp"] = AT

    assert diagnosis.driver([pod]) is None
    assert not diagnosis.is_ready(pod)
