"""A driver that ends again and again: after its budget the job is Failed with its last words, until it is
changed.
"""

import dataclasses
from typing import Any

from joinop.config import Config
from joinop.decide import DesiredState, ObservedState, decide
from joinop.names import Object
from joinop.restarts import Tally, counted, from_status, to_status

from tests.deploy.operator.objects import AT, driver_pod, settle, stream_join

NOW = 1_767_225_600.0  # AT
EARLIER = "2025-12-31T23:49:00Z"  # eleven minutes before
CONFIG = Config(image="streamjoin:1")


def crashed(times: int, uid: str = "uid-pod", words: str = "boom") -> Object:
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": words}}
    pod = driver_pod(
        ready=False, containerStatuses=[{"restartCount": times, "lastState": ended, "state": {}}]
    )
    return {**pod, "metadata": {**pod["metadata"], "uid": uid}}


def working(times: int, since: str) -> Object:
    state = {"running": {"startedAt": since}}
    return driver_pod(containerStatuses=[{"restartCount": times, "state": state, "ready": True}])


def tallied(*pods: Object | None, before: Tally | None = None) -> Tally:
    tally = before or Tally(1, "i")
    for pod in pods:
        tally = counted(tally, [] if pod is None else [pod], 1, "i", NOW)
    return tally


def test_each_end_counts_once() -> None:
    """In one pod and in the next; also that of a pod which its node ended."""
    assert tallied(crashed(0), crashed(1), crashed(1), crashed(3)).restarts == 3
    assert tallied(crashed(3), None, crashed(1, "other")).restarts == 4
    evicted = driver_pod(ready=False, phase="Failed", reason="Evicted")
    assert tallied(evicted, evicted).restarts == 1
    assert tallied(crashed(2, words="no brokers")).words == "the driver ended with code 1: no brokers"


def test_begins_anew() -> None:
    """With another spec or image, and once it has worked for ten minutes; not when it has only just begun
    to.
    """
    five = tallied(crashed(5))
    assert counted(five, [crashed(5)], 2, "i", NOW) == Tally(2, "i", "uid-pod", 5)
    assert counted(five, [crashed(6)], 1, "j", NOW).restarts == 0
    assert tallied(working(5, AT), before=five).restarts == 5
    assert tallied(working(5, EARLIER), before=five) == Tally(1, "i", "uid-pod", 5)
    assert tallied(crashed(6), before=tallied(working(5, EARLIER), before=five)).restarts == 1


def test_remembered() -> None:
    """What is written is read as it was."""
    assert from_status({"driver": {"pod": "p", **to_status(tallied(crashed(5)))}}) == tallied(crashed(5))
    assert from_status({}) == Tally()


def looked(observed: ObservedState, *pods: Object, **changes: Any) -> tuple[ObservedState, DesiredState]:
    return settle(dataclasses.replace(observed, pods=pods, **changes), CONFIG)


def replicas(observed: ObservedState) -> int:
    found: int = observed.children["StatefulSet", "late-driver"]["spec"]["replicas"]
    return found


def test_the_budget() -> None:
    """Beyond it no driver is started, and the job says what the last one said, also when no pod is left; a
    change frees it.
    """
    given = stream_join(driver__restarts=2)
    observed, _ = looked(ObservedState(given, {}, claims={"shared": True}, now=NOW, at=AT))
    observed, _ = looked(observed, crashed(0))
    observed, decision = looked(observed, crashed(2))
    assert (replicas(observed), decision.status["phase"]) == (1, "Degraded")

    observed, decision = looked(observed, crashed(3))
    assert (replicas(observed), decision.status["phase"]) == (0, "Failed")
    assert "RestartsExhausted" in [event.reason for event in decision.events]
    observed, decision = looked(observed)
    assert decision.status["phase"] == "Failed"
    assert "ended 3 times in a row" in decision.status["message"]
    assert "boom; change the spec or the image" in decision.status["message"]

    other = {**observed.stream_join, "metadata": {**observed.stream_join["metadata"], "generation": 2}}
    assert replicas(looked(observed, stream_join=other)[0]) == 1
    assert decide(observed, CONFIG).job is not None
    assert replicas(settle(observed, Config(image="streamjoin:2"))[0]) == 1
