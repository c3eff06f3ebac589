"""What is done for a job?

Once it is done, nothing is left to do; what is refused changes nothing of what runs.
"""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joinop import names
from joinop.config import Config
from joinop.decide import DesiredState, ObservedState, decide
from joinop.degradation import Degradation
from joinop.drift import covers, stamped
from joinop.names import JobKey, Object

from joinlib.scale import ExecutorRequest
from tests.deploy.operator.objects import (
    AT,
    LATER,
    accepted,
    driver_pod,
    executor_pod,
    running,
    settle,
    stream_join,
)

CONFIG = Config(image="streamjoin:1")
BY_HAND = "by hand: spec.executors.instances, as kubectl scale sets it"


def observed(given: Object | None = None, **more: Any) -> ObservedState:
    return ObservedState(given or stream_join(), {}, claims={"shared": True}, at=AT, **more)


def started(**places: Any) -> ObservedState:
    """A job whose driver works."""
    given = stream_join(**places)
    first, _ = settle(
        observed(given, pods=(driver_pod(given), executor_pod(1), executor_pod(2)), scrape=running()), CONFIG
    )
    return first


def changed(before: ObservedState, **places: Any) -> ObservedState:
    """The same with another spec."""
    return dataclasses.replace(
        before, stream_join={**stream_join(**places), "status": before.stream_join["status"]}
    )


def said(decision: DesiredState, title: str) -> tuple[str, str]:
    found = next(c for c in decision.status["conditions"] if c["type"] == title)
    return found["status"], found["reason"]


def applied(decision: DesiredState) -> list[str]:
    return [f"{child['kind']}/{child['metadata']['name']}" for child in decision.apply]


def test_from_nothing() -> None:
    """All objects are made, the StatefulSet last, and the next decision writes nothing."""
    after, decision = settle(observed(), CONFIG)
    again = decide(dataclasses.replace(after, at=LATER), CONFIG)

    assert len(decision.apply) == 9
    assert applied(decision)[-1] == "StatefulSet/late-driver"
    assert decision.status["phase"] == "Pending"
    assert again.apply == again.prune == again.events == ()
    assert again.status == decision.status


@given(st.sets(st.sampled_from(range(9))), st.booleans(), st.booleans())
def test_settles(gone: set[int], suspended: bool, ready: bool) -> None:
    """Whatever children are gone come back, and the next decision writes nothing."""
    given = stream_join(suspend=suspended)
    first, _ = settle(observed(given, pods=(driver_pod(given, ready=ready),)), CONFIG)
    left = {
        part: child
        for number, (part, child) in enumerate(sorted(first.children.items()))
        if number not in gone
    }

    after, decision = settle(dataclasses.replace(first, children=left), CONFIG)
    again = decide(after, CONFIG)

    assert len(decision.apply) == len(gone)
    assert after.children == first.children
    assert again.apply == again.events == ()
    assert again.status == decision.status


def test_drift_is_put_right() -> None:
    """What somebody changed by hand is applied again; what the server adds is left alone."""
    after, _ = settle(observed(), CONFIG)
    part = ("StatefulSet", "late-driver")
    defaulted = json.loads(json.dumps(after.children[part]))
    defaulted["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst"
    drifted = json.loads(json.dumps(defaulted))
    drifted["spec"]["replicas"] = 3

    def look(child: Object) -> list[str]:
        return applied(decide(dataclasses.replace(after, children={**after.children, part: child}), CONFIG))

    assert look(defaulted) == []
    assert look(drifted) == ["StatefulSet/late-driver"]


def test_running() -> None:
    """Figures and counts are shown; the checkpoint is pinned once the driver has started."""
    status = started().stream_join["status"]

    assert status["phase"] == "Running"
    assert status["executors"]["ready"] == status["executors"]["wanted"] == 2
    assert (status["memoryLoad"], status["skew"], status["lag"], status["batch"], status["rate"]) == (
        "0.42",
        "0.10",
        7,
        7,
        1234.6,
    )
    assert status["checkpoint"]["folder"] == "/data/checkpoint"
    assert json.loads(status["checkpoint"]["fingerprint"]) == accepted(stream_join()).fingerprint


def test_ready_means_that_somebody_joins() -> None:
    """A driver without an executor is not Ready; without its report, the executors' pods count."""
    nobody = running(executors={"ready": 0, "wanted": 2})
    alone = decide(dataclasses.replace(started(), scrape=nobody), CONFIG)
    assert said(alone, "Ready") == ("False", "NoExecutors")
    assert alone.status["message"] == "the driver runs, and waits for executors"

    one = running(executors={"ready": 1, "wanted": 2})
    some = decide(dataclasses.replace(started(), scrape=one), CONFIG)
    assert said(some, "Ready") == ("True", "Running")

    silent = dataclasses.replace(started(), scrape=None, pods=(driver_pod(),))
    assert said(decide(silent, CONFIG), "Ready") == ("False", "NoExecutors")


def test_no_figures_are_not_zero() -> None:
    """A driver that cannot be asked has no figures, and a condition says so."""
    decision = decide(dataclasses.replace(started(), scrape=None), CONFIG)

    assert not {"memoryLoad", "skew", "lag", "batch", "rate"} & set(decision.status)
    assert said(decision, "MetricsAvailable") == ("False", "Unreachable")
    assert decision.status["phase"] == "Running"


@pytest.mark.parametrize("figure", [None, "x", float("nan"), float("inf"), -1, True, [1]])
def test_nonsense_figures(figure: Any) -> None:
    """A figure that is none is left out, and the status stays JSON."""
    scrape = running(memoryLoad=figure, skew=figure, lag={"orders": figure}, batch=figure, rate=figure)
    decision = decide(dataclasses.replace(started(), scrape=scrape), CONFIG)

    assert not {"memoryLoad", "skew", "lag", "batch", "rate"} & set(decision.status)
    json.dumps(decision.status, allow_nan=False)


def test_sql_error() -> None:
    """A mistake in the SQL shows with its place, and what runs goes on as it was."""
    decision = decide(
        changed(started(), sql="SELECT o.nope FROM orders o JOIN shipments s ON o.id = s.id"), CONFIG
    )

    assert decision.apply == decision.prune == ()
    assert decision.status["phase"] == "Degraded"
    assert said(decision, "Degraded") == ("True", "SpecRefused")
    assert said(decision, "Ready") == ("True", "Running")
    assert decision.status["message"].startswith("spec.sql: line 1, column 8: o has no column nope")
    assert [event.reason for event in decision.events] == ["SpecRefused"]


def test_refused_from_the_start() -> None:
    """A document that was never good makes no objects."""
    decision = decide(observed(stream_join(sql="SELECT 1")), CONFIG)

    assert decision.job is None
    assert decision.apply == ()
    assert decision.status["phase"] == "Degraded"


def test_children_come_back_while_refused() -> None:
    """A bad edit does not stop the operator from keeping the accepted job alive."""
    before = changed(started(), sql="SELECT 1")
    left = {part: child for part, child in before.children.items() if part[0] != "Service"}

    assert applied(decide(dataclasses.replace(before, children=left), CONFIG)) == ["Service/late-driver"]


def test_suspend_is_obeyed_while_refused() -> None:
    """A job can be stopped whatever else is wrong with its spec."""
    decision = decide(changed(started(), sql="SELECT 1", suspend=True), CONFIG)

    assert applied(decision) == ["StatefulSet/late-driver"]
    assert decision.apply[0]["spec"]["replicas"] == 0


def test_live_change() -> None:
    """A live change is written for the driver's next start and requested from the running one; its pod stays."""
    before = changed(started(), executors__instances=4)
    decision = decide(before, CONFIG)

    assert applied(decision) == ["ConfigMap/late-spec", "PodDisruptionBudget/late-executor"]
    assert decision.executors == ExecutorRequest(4, BY_HAND)
    assert said(decision, "Scaling") == ("True", "Scaling")
    assert [event.reason for event in decision.events] == ["Changed", "Scaling"]


@pytest.mark.parametrize(
    ("executors", "last", "asked"),
    [
        ({"min": 2, "max": 4}, 2, None),  # nothing decided: min
        ({"min": 2, "max": 4}, 3, (3, "as many as were wanted before; the decision is no longer remembered")),
        ({"min": 2, "max": 3}, 4, (3, "by spec.executors: min is 2, max 3")),  # within the limits
        ({"min": 3, "max": 4}, 2, (3, "by spec.executors: min is 3, max 4")),
        ({"min": 2, "max": 4, "instances": 4}, 2, (4, BY_HAND)),
    ],
)  # fmt: skip
def test_wanted_executors(executors: dict[str, int], last: int, asked: tuple[int, str] | None) -> None:
    """The spec's number, else the last one, within the limits; and which of them it was."""
    before = changed(started(), executors={**executors, "memory": "2Gi"})
    before.stream_join["status"]["executors"]["wanted"] = last

    assert decide(before, CONFIG).executors == (asked and ExecutorRequest(*asked))


def test_spare_executors_are_counted_apart() -> None:
    """They are not among those that work, so nothing waits for them."""
    report = running(executors={"ready": 2, "wanted": 2, "leaving": 0, "spare": 1})
    decision = decide(dataclasses.replace(started(), scrape=report), CONFIG)

    found = decision.status["executors"]
    assert (found["ready"], found["wanted"], found["spare"]) == (2, 2, 1)
    assert said(decision, "Scaling") == ("False", "Settled")


def test_not_taken() -> None:
    """A driver that has not read the new limits yet is no fault; the condition says what it waits for."""
    before = dataclasses.replace(
        changed(started(), executors__instances=4), unacknowledged="not between min and max"
    )
    decision = decide(before, CONFIG)

    assert (said(decision, "Scaling"), decision.status["phase"]) == (("True", "NotTaken"), "Running")
    assert decision.executors == ExecutorRequest(4, BY_HAND)


def test_nobody_is_asked_too_early() -> None:
    """A driver that starts, or is about to be replaced, gets no requests."""
    before = changed(started(), executors__instances=4)

    assert decide(dataclasses.replace(before, scrape=running(phase="Starting")), CONFIG).executors is None
    assert decide(changed(before, executors__instances=4, batch={"maxRows": 5}), CONFIG).executors is None


def test_restart() -> None:
    """A change that needs another driver changes its pod's template."""
    decision = decide(changed(started(), batch={"maxRows": 5}), CONFIG)

    assert applied(decision) == ["ConfigMap/late-spec", "StatefulSet/late-driver"]
    assert said(decision, "Progressing") == ("True", "RollingOut")
    assert (
        decision.events[0].message
        == "spec.batch.maxRows: the default -> 5: the driver restarts, its state is kept"
    )


def test_other_units() -> None:
    """The driver that comes divides the state."""
    decision = decide(changed(started(), join__units=16), CONFIG)

    assert applied(decision) == ["ConfigMap/late-spec", "StatefulSet/late-driver"]
    assert (
        decision.events[0].message
        == "spec.join.units: the default -> 16: the driver restarts, its state is kept"
    )


def test_new_checkpoint_needed() -> None:
    """A change that state cannot follow is refused with the reason and the way out; `reset` lets it
    through.
    """
    before = started()
    other = "SELECT o.id, s.carrier FROM orders o LEFT JOIN shipments s ON o.id = s.id"
    refused = decide(changed(before, sql=other), CONFIG)
    afresh = decide(changed(before, sql=other, checkpoint__reset="2"), CONFIG)

    assert refused.apply == ()
    assert said(refused, "Degraded") == ("True", "NewCheckpointNeeded")
    assert "are left(0, 1)" in refused.status["message"]
    assert "spec.checkpoint.reset" in refused.status["message"]
    assert applied(afresh) == ["ConfigMap/late-spec", "StatefulSet/late-driver"]
    assert refused.status["checkpoint"] == before.stream_join["status"]["checkpoint"]


def test_pin_moves_with_the_driver() -> None:
    """The pinned checkpoint changes only when a driver works on the new one."""
    before = changed(started(), join__units=16, checkpoint__reset="2")
    after, decision = settle(before, CONFIG)
    pod = driver_pod(stream_join(join__units=16, checkpoint__reset="2"))

    assert decision.status["checkpoint"]["folder"] == "/data/checkpoint"
    assert (
        decide(dataclasses.replace(after, pods=(pod,)), CONFIG).status["checkpoint"]["folder"]
        == "/data/checkpoint@2"
    )


def test_missing_claim() -> None:
    """No driver starts before its claim is there, and the claim is named."""
    decision = decide(dataclasses.replace(observed(), claims={"shared": False}), CONFIG)

    assert decision.apply == ()
    assert "PersistentVolumeClaim shared is not in this namespace" in decision.status["message"]


def test_owned_checkpoint() -> None:
    """Two jobs on one checkpoint: the one that must not have it stops."""
    decision = decide(dataclasses.replace(started(), checkpoint_owner=JobKey("shop", "first")), CONFIG)

    assert decision.apply[0]["spec"]["replicas"] == 0
    assert decision.status["phase"] == "Degraded"
    assert decision.status["message"].startswith(
        "spec.checkpoint.path: checkpoint /data/checkpoint belongs to StreamJoin first"
    )


def test_image_is_kept() -> None:
    """A newer operator, with another image for jobs, does not restart a job that has not changed."""
    before = started()
    newer = Config(image="streamjoin:2")

    assert decide(before, newer).apply == ()
    restarted = decide(changed(before, batch={"maxRows": 5}), newer)
    assert restarted.apply[-1]["spec"]["template"]["spec"]["containers"][0]["image"] == "streamjoin:2"
    assert names.IMAGE in restarted.apply[-1]["metadata"]["annotations"]


def test_prune() -> None:
    """An object of this job that it should not have goes; one of somebody else's stays."""
    before = started()
    owner = {"ownerReferences": [names.owner("late", stream_join()["metadata"]["uid"])]}
    ours = {"kind": "PodMonitor", "metadata": {"name": "late", "uid": "1", **owner}}
    theirs = {"kind": "ConfigMap", "metadata": {"name": "other", "uid": "2"}}
    children = {**before.children, ("PodMonitor", "late"): ours, ("ConfigMap", "other"): theirs}

    assert decide(dataclasses.replace(before, children=children), CONFIG).prune == (ours,)


def test_trouble_with_writing_shows() -> None:
    """What the API server refused is on the job."""
    decision = decide(
        dataclasses.replace(observed(), write_error=Degradation("WriteFailed", "quota exceeded")), CONFIG
    )

    assert said(decision, "Degraded") == ("True", "WriteFailed")


@given(
    st.recursive(
        st.none() | st.integers(0, 1) | st.just("x"),
        lambda v: st.lists(v, max_size=2) | st.dictionaries(st.sampled_from("ab"), v, max_size=2),
        max_leaves=5,
    )
)
def test_covers_itself(value: Any) -> None:
    """An object covers itself, even with something added to it."""
    assert covers(value, value)
    assert covers({"a": value, "b": 1}, {"a": value})


def test_stamp() -> None:
    """The stamp changes with what is desired, even if only something is no longer desired."""
    one, two = ({"metadata": {"name": "x"}, "data": data} for data in ({"a": 1, "b": 2}, {"a": 1}))

    assert stamped(one) == stamped(one)
    assert not covers(stamped(one), stamped(two))
