"""A lost node: its driver is replaced without a human, and never before its Lease has lapsed."""

import asyncio
from typing import Any

import pytest
from joinop import lost, names, symptoms
from joinop.api import FORBIDDEN, ApiError
from joinop.cache import Cache
from joinop.config import Config
from joinop.decide import Decision, Seen, decide
from joinop.kinds import LEASE, POD, STREAMJOIN, Kind
from joinop.look import Looker
from joinop.meters import Meters
from joinop.names import Key, Object
from joinop.pulse import Pulse

from tests.deploy.operator.things import AT, driver_pod, executor_pod, thing

GONE, READY, UNKNOWN = lost.Node(lost=True, words="is gone"), lost.Node(lost=False), lost.Node(lost=None)
NOW = 1_767_225_600.0  # AT
KEY = Key("shop", "late")


def on(pod: Object, node: str = "far", leaving: str | None = None) -> Object:
    metadata = pod["metadata"] | ({"deletionTimestamp": leaving} if leaving else {})
    return {**pod, "metadata": metadata, "spec": {"nodeName": node}}


def decided(*pods: Object, node: lost.Node, lapsed: bool, now: float = NOW, **status: Any) -> Decision:
    given = thing(**status)
    seen = Seen(
        given, {}, pods=pods, claims={"shared": True}, nodes={"far": node}, lapsed=lapsed, now=now, at=AT
    )
    return decide(seen, Config())


def degraded(decision: Decision) -> Object:
    found: Object = next(c for c in decision.status["conditions"] if c["type"] == "Degraded")
    return found


@pytest.mark.parametrize("leaving", [None, AT])
@pytest.mark.parametrize(("node", "lapsed", "removed"), [
    (GONE, True, True),
    (GONE, False, False),
    (READY, True, False),
    (UNKNOWN, True, False),
])  # fmt: skip
def test_driver(node: lost.Node, lapsed: bool, removed: bool, leaving: str | None) -> None:
    """Only a lost node and a lapsed Lease together, whether Kubernetes has given the pod up yet or not."""
    decision = decided(on(driver_pod(ready=False), leaving=leaving), node=node, lapsed=lapsed)

    assert [pod["metadata"]["name"] for pod in decision.remove] == (["late-driver-0"] if removed else [])
    assert ("Replaced" in [event.reason for event in decision.events]) == removed


def test_what_is_awaited_is_said() -> None:
    """The condition names the node, since when, and what comes next."""
    object_ = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": AT}]}}
    decision = decided(on(driver_pod(ready=False)), node=lost.node(object_), lapsed=False)

    assert (degraded(decision)["reason"], decision.status["phase"]) == ("NodeLost", "Degraded")
    assert degraded(decision)["message"] == (
        f"node far is NotReady since {AT}; its driver is replaced when its Lease lapses"
    )


def test_without_the_right_to_ask() -> None:
    """A pod long past its grace is taken for one on a lost node; within it, it may still be ending."""
    pod = on(driver_pod(ready=False), leaving=AT)

    assert not decided(pod, node=UNKNOWN, lapsed=True, now=NOW + 29).remove
    assert not decided(pod, node=UNKNOWN, lapsed=False, now=NOW + 31).remove
    decision = decided(pod, node=UNKNOWN, lapsed=True, now=NOW + 31)
    assert len(decision.remove) == 1
    assert "does not end its pod" in degraded(decision)["message"]


def test_executors() -> None:
    """They go once they are to go, whoever has the Lease; the one that nobody gave up stays."""
    pods = on(executor_pod(1, ready=False), leaving=AT), on(executor_pod(2, ready=False))

    assert [p["metadata"]["name"] for p in decided(*pods, node=GONE, lapsed=False).remove] == ["late-exec-1"]
    assert not decided(*pods, node=READY, lapsed=True).remove


def test_nodes_of_pods_that_work_are_not_asked_about() -> None:
    """Nor of those that have none yet."""
    assert lost.suspects([on(driver_pod()), driver_pod(ready=False)]) == set()
    assert lost.suspects([on(executor_pod(1, ready=False)), on(driver_pod(), "near", AT)]) == {"far", "near"}


def lease(renewed: str, holder: str = "uid-pod") -> Object:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


def test_lease() -> None:
    """It lapses when it was not renewed for its time by our clock, whatever the time that is written in it."""
    first = lost.watched(None, lease("1999"), 0.0)
    renewed = lost.watched(first, lease("1998"), 14.0)
    same = lost.watched(renewed, lease("1998"), 28.0)

    assert [first.lapsed(15.0), renewed.lapsed(28.0), same.lapsed(28.9), same.lapsed(29.1)] == [
        False,
        False,
        False,
        True,
    ]
    assert lost.watched(None, lease("1", holder=""), 0.0).lapsed(0.0)
    assert lost.watched(None, None, 0.0).lapsed(0.0)


class Server:
    """An API server that remembers what it was asked to delete."""

    def __init__(self, *, may_ask: bool = True) -> None:
        self.may_ask, self.asked, self.deleted = may_ask, [], []  # type: ignore[var-annotated]
        self.renewed = "1"

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        self.asked.append(f"{kind.plural}/{name}")
        if kind.plural == "nodes":
            if not self.may_ask:
                raise ApiError(FORBIDDEN, "Forbidden", "nodes is forbidden")
            return None
        return lease(self.renewed) if kind is LEASE else None

    async def delete(self, thing: Object, *, at_once: bool = False) -> None:
        self.deleted.append((thing["kind"], thing["metadata"]["name"], at_once))

    async def events(self, *_: str) -> list[Object]:
        return []

    async def apply(self, thing: Object) -> Object:
        return {**thing, "metadata": {**thing["metadata"], "uid": "u", "resourceVersion": "2"}}

    async def apply_status(self, namespace: str, name: str, status: Object) -> Object:
        return {**thing(), "status": status}

    async def create(self, _: Object) -> bool:
        return True


def looked(server: Server, pod: Object, *times: float, renewing: bool = False) -> Looker:
    """After looks at these times."""
    clock = [0.0]
    looker = Looker(Config(), Cache(), server, None, Meters(), Pulse(), clock=lambda: clock[0])  # type: ignore[arg-type]
    looker.cache.put(STREAMJOIN, thing())
    looker.cache.put(POD, pod)

    async def looks() -> None:
        for number, at in enumerate(times):
            clock[0] = at
            server.renewed = str(number) if renewing else "1"
            assert await looker.look(KEY)

    asyncio.run(looks())
    return looker


def test_looks_replace_it() -> None:
    """Look by look: asked about the node, the Lease watched for its time, then removed at once, and forgotten."""
    server, pod = Server(), on(driver_pod(ready=False))
    looker = looked(server, pod, 0.0, 5.0, 14.0)

    assert (server.deleted, looker.uneasy(KEY)) == ([], True)
    assert server.asked.count("nodes/far") == 3
    server = Server()
    looker = looked(server, pod, 0.0, 5.0, 16.0)
    assert server.deleted == [("Pod", "late-driver-0", True)]
    assert looker.cache.pods(KEY) == ()


def test_a_driver_that_renews_is_left_alone() -> None:
    """Its node may be silent for as long as it likes: it is the driver that counts."""
    server = Server()
    looked(server, on(driver_pod(ready=False)), 0.0, 20.0, 40.0, 60.0, renewing=True)

    assert server.deleted == []


def test_a_refusal_is_no_failure() -> None:
    """Where only Roles are given nobody may ask for nodes: looks go on."""
    server = Server(may_ask=False)
    looked(server, on(driver_pod(ready=False)), 0.0, 20.0)

    assert server.deleted == []


def test_nothing_is_lost_on_a_good_day() -> None:
    """A job that works costs no question."""
    server = Server()
    looker = looked(server, on(driver_pod()), 0.0)

    assert not [what for what in server.asked if what.startswith(("nodes", "leases"))]
    assert not looker.uneasy(KEY)
    assert symptoms.is_ready(looker.cache.pods(KEY)[0])
    assert names.pod("late") == "late-driver-0"
