"""A lost node: its driver is replaced without a human, and never before its Lease has lapsed."""

import asyncio
from typing import Any

import pytest
from joinop import diagnosis, node_loss
from joinop.api import FORBIDDEN, ApiError
from joinop.cache import ObjectCache
from joinop.config import Config
from joinop.decide import DesiredState, ObservedState, decide
from joinop.liveness import Liveness
from joinop.metrics import OperatorMetrics
from joinop.names import JobKey, Object
from joinop.reconcile import Reconciler
from joinop.resources import STREAMJOIN

from joinlib import deploy
from joinlib.deploy import LEASE, POD, Resource
from tests.deploy.operator.objects import AT, driver_pod, executor_pod, stream_join

GONE, READY, UNKNOWN = (
    node_loss.NodeHealth(lost=True, description="is gone"),
    node_loss.NodeHealth(lost=False),
    node_loss.NodeHealth(lost=None),
)
NOW = 1_767_225_600.0  # AT
KEY = JobKey("shop", "late")


def on(pod: Object, node: str = "far", terminating: str | None = None) -> Object:
    metadata = pod["metadata"] | ({"deletionTimestamp": terminating} if terminating else {})
    return {**pod, "metadata": metadata, "spec": {"nodeName": node}}


def decided(
    *pods: Object, node: node_loss.NodeHealth, lapsed: bool, now: float = NOW, **status: Any
) -> DesiredState:
    given = stream_join(**status)
    observed = ObservedState(
        given, {}, pods=pods, claims={"shared": True}, nodes={"far": node}, lapsed=lapsed, now=now, at=AT
    )
    return decide(observed, Config())


def degraded(decision: DesiredState) -> Object:
    found: Object = next(c for c in decision.status["conditions"] if c["type"] == "Degraded")
    return found


@pytest.mark.parametrize("terminating", [None, AT])
@pytest.mark.parametrize(("node", "lapsed", "removed"), [
    (GONE, True, True),
    (GONE, False, False),
    (READY, True, False),
    (UNKNOWN, True, False),
])  # fmt: skip
def test_driver(node: node_loss.NodeHealth, lapsed: bool, removed: bool, terminating: str | None) -> None:
    """Only a lost node and a lapsed Lease together, whether Kubernetes has given the pod up yet or not."""
    decision = decided(on(driver_pod(ready=False), terminating=terminating), node=node, lapsed=lapsed)

    assert [pod["metadata"]["name"] for pod in decision.remove] == (["late-driver-0"] if removed else [])
    assert ("Replaced" in [event.reason for event in decision.events]) == removed


def test_what_is_awaited_is_said() -> None:
    """The condition names the node, since when, and what comes next."""
    object_ = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": AT}]}}
    decision = decided(on(driver_pod(ready=False)), node=node_loss.health(object_), lapsed=False)

    assert (degraded(decision)["reason"], decision.status["phase"]) == ("NodeLost", "Degraded")
    assert degraded(decision)["message"] == (
        f"node far has been NotReady since {AT}; its driver is replaced when its Lease lapses"
    )


def test_without_the_right_to_ask() -> None:
    """A pod long past its grace is taken for one on a lost node; within it, it may still be ending."""
    pod = on(driver_pod(ready=False), terminating=AT)

    assert not decided(pod, node=UNKNOWN, lapsed=True, now=NOW + 29).remove
    assert not decided(pod, node=UNKNOWN, lapsed=False, now=NOW + 31).remove
    decision = decided(pod, node=UNKNOWN, lapsed=True, now=NOW + 31)
    assert len(decision.remove) == 1
    assert "has not ended its pod" in degraded(decision)["message"]


def test_executors() -> None:
    """Terminating executors are deleted, whoever holds the Lease; the others stay."""
    pods = on(executor_pod(1, ready=False), terminating=AT), on(executor_pod(2, ready=False))

    assert [p["metadata"]["name"] for p in decided(*pods, node=GONE, lapsed=False).remove] == ["late-exec-1"]
    assert not decided(*pods, node=READY, lapsed=True).remove


def test_nodes_of_pods_that_work_are_not_asked_about() -> None:
    """Nor of those that have none yet."""
    assert node_loss.suspects([on(driver_pod()), driver_pod(ready=False)]) == set()
    assert node_loss.suspects([on(executor_pod(1, ready=False)), on(driver_pod(), "near", AT)]) == {
        "far",
        "near",
    }


def lease(renewed: str, holder: str = "uid-pod") -> Object:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


def test_lease() -> None:
    """It lapses when it was not renewed for its time by our clock, whatever the time that is written in it."""
    first = node_loss.watch(None, lease("1999"), 0.0)
    renewed = node_loss.watch(first, lease("1998"), 14.0)
    same = node_loss.watch(renewed, lease("1998"), 28.0)

    assert [first.lapsed(15.0), renewed.lapsed(28.0), same.lapsed(28.9), same.lapsed(29.1)] == [
        False,
        False,
        False,
        True,
    ]
    assert node_loss.watch(None, lease("1", holder=""), 0.0).lapsed(0.0)
    assert node_loss.watch(None, None, 0.0).lapsed(0.0)


class Server:
    """An API server that remembers what it was asked to delete."""

    def __init__(self, *, may_ask: bool = True) -> None:
        self.may_ask, self.asked, self.deleted = may_ask, [], []  # type: ignore[var-annotated]
        self.renewed = "1"

    async def get(self, kind: Resource, namespace: str | None, name: str) -> Object | None:
        self.asked.append(f"{kind.plural}/{name}")
        if kind.plural == "nodes":
            if not self.may_ask:
                raise ApiError(FORBIDDEN, "Forbidden", "nodes is forbidden")
            return None
        return lease(self.renewed) if kind is LEASE else None

    async def delete(self, stream_join: Object, *, at_once: bool = False) -> None:
        self.deleted.append((stream_join["kind"], stream_join["metadata"]["name"], at_once))

    async def events(self, *_: str) -> list[Object]:
        return []

    async def apply(self, stream_join: Object) -> Object:
        return {**stream_join, "metadata": {**stream_join["metadata"], "uid": "u", "resourceVersion": "2"}}

    async def apply_status(self, namespace: str, name: str, status: Object) -> Object:
        return {**stream_join(), "status": status}

    async def create(self, _: Object) -> bool:
        return True


def looked(server: Server, pod: Object, *times: float, renewing: bool = False) -> Reconciler:
    """Return the watch after readings at these times."""
    clock = [0.0]
    reconciler = Reconciler(
        Config(), ObjectCache(), server, None, OperatorMetrics(), Liveness(), clock=lambda: clock[0]
    )  # type: ignore[arg-type]
    reconciler.cache.put(STREAMJOIN, stream_join())
    reconciler.cache.put(POD, pod)

    async def looks() -> None:
        for number, at in enumerate(times):
            clock[0] = at
            server.renewed = str(number) if renewing else "1"
            assert await reconciler.reconcile(KEY)

    asyncio.run(looks())
    return reconciler


def test_reconciliations_replace_it() -> None:
    """Look by look: asked about the node, the Lease watched for its time, then removed at once, and
    forgotten.
    """
    server, pod = Server(), on(driver_pod(ready=False))
    reconciler = looked(server, pod, 0.0, 5.0, 14.0)

    assert (server.deleted, reconciler.is_waiting(KEY)) == ([], True)
    assert server.asked.count("nodes/far") == 3
    server = Server()
    reconciler = looked(server, pod, 0.0, 5.0, 16.0)
    assert server.deleted == [("Pod", "late-driver-0", True)]
    assert reconciler.cache.pods(KEY) == ()


def test_a_driver_that_renews_is_left_alone() -> None:
    """Its node may be silent for as long as it likes: it is the driver that counts."""
    server = Server()
    looked(server, on(driver_pod(ready=False)), 0.0, 20.0, 40.0, 60.0, renewing=True)

    assert server.deleted == []


def test_a_refusal_is_no_failure() -> None:
    """With Roles only, the operator may not read nodes: reconciliation goes on."""
    server = Server(may_ask=False)
    looked(server, on(driver_pod(ready=False)), 0.0, 20.0)

    assert server.deleted == []


def test_nothing_is_lost_on_a_good_day() -> None:
    """A job that works costs no question."""
    server = Server()
    reconciler = looked(server, on(driver_pod()), 0.0)

    assert not [what for what in server.asked if what.startswith(("nodes", "leases"))]
    assert not reconciler.is_waiting(KEY)
    assert diagnosis.is_ready(reconciler.cache.pods(KEY)[0])
    assert deploy.driver_pod("late") == "late-driver-0"
