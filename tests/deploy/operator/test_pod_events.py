"""A driver's pod that cannot be made, or not started: the status says why, and after a while that it takes
too long.
"""

import dataclasses

import pytest
from joinop import pod_events
from joinop.config import Config
from joinop.decide import ObservedState, decide
from joinop.names import Object

from tests.deploy.operator.objects import AT, LATER, driver_pod, settle, stream_join

NOW = 1_767_225_600.0  # AT
QUOTA = (
    'create Pod late-driver-0 in StatefulSet late-driver failed error: pods "late-driver-0" is forbidden: '
    "exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0"
)


def event(reason: str, message: str = "", at: str = AT) -> Object:
    return {"reason": reason, "message": message, "lastTimestamp": at}


@pytest.mark.parametrize(("message", "reason", "said"), [
    (QUOTA, "FailedCreate", "pods=0; ask for less in spec.driver, or have the namespace's ResourceQuota raised"),
    ("x error: violates PodSecurity \"restricted\": hostPath", "FailedCreate", "hostPath; use a volume that"),
    ("x error: admission webhook \"a.b\" denied it", "FailedCreate", "denied it; change what the webhook refuses"),
    ("MountVolume.SetUp failed: secret \"login\" not found", "FailedMount", "secret \"login\" not found; create what it names"),
])  # fmt: skip
def test_reasons(message: str, reason: str, said: str) -> None:
    """Who refuses says it in an event; the way on is added."""
    found = pod_events.problem([event("SuccessfulCreate", at="2025-01-01T00:00:00Z"), event(reason, message)])

    assert found is not None
    assert said in found.message
    assert found.message.startswith("the driver's pod cannot ")


def test_what_is_over_is_over() -> None:
    """Only the newest event counts; without events nothing is known."""
    assert pod_events.problem([event("FailedCreate", QUOTA), event("SuccessfulCreate", at=LATER)]) is None
    assert pod_events.problem([]) is None


def test_whose_events() -> None:
    """Without a pod the StatefulSet's; the pod's own while it is on a node and does not start; else
    nobody's.
    """
    waiting = driver_pod(ready=False, phase="Pending", containerStatuses=[{"state": {"waiting": {}}}])
    placed = {**waiting, "spec": {"nodeName": "near"}}

    assert pod_events.whose("late", []) == ("StatefulSet", "late-driver")
    assert pod_events.whose("late", [placed]) == ("Pod", "late-driver-0")
    assert pod_events.whose("late", [waiting]) is None  # the scheduler has its say in its status
    assert pod_events.whose("late", [driver_pod()]) is None


def told(observed: ObservedState, title: str) -> tuple[str, str, str]:
    status = decide(observed, Config()).status
    found = next(c for c in status["conditions"] if c["type"] == title)
    return found["status"], found["reason"], found["message"]


def test_in_the_status() -> None:
    """Degraded, with an event."""
    observed = ObservedState(
        stream_join(),
        {},
        claims={"shared": True},
        pod_problem=pod_events.problem([event("FailedCreate", QUOTA)]),
        at=AT,
    )

    assert told(observed, "Degraded")[:2] == ("True", "PodRefused")
    assert "PodRefused" in [event.reason for event in decide(observed, Config()).events]


def test_deadline() -> None:
    """It shows once the deadline has passed, until a driver works or the spec changes; starting goes on."""
    observed, _ = settle(
        ObservedState(stream_join(driver__startWithin="5m"), {}, claims={"shared": True}, now=NOW, at=AT)
    )
    assert told(dataclasses.replace(observed, now=NOW + 299), "Progressing")[:2] == ("True", "Starting")
    late = dataclasses.replace(observed, now=NOW + 301)
    assert told(late, "Progressing")[:2] == ("False", "ProgressDeadlineExceeded")
    assert told(late, "Degraded")[1:] == (
        "ProgressDeadlineExceeded",
        "no driver works after 5m (spec.driver.startWithin): waiting for the driver",
    )

    later, decision = settle(late)
    assert not decision.prune
    assert told(dataclasses.replace(later, now=NOW + 900), "Degraded")[1] == "ProgressDeadlineExceeded"
    well = dataclasses.replace(later, pods=(driver_pod(later.stream_join),))
    assert told(well, "Degraded")[0] == "False"
    other = {**later.stream_join, "metadata": {**later.stream_join["metadata"], "generation": 2}}
    assert told(dataclasses.replace(later, stream_join=other), "Progressing")[:2] == ("True", "Starting")
