"""Pods of driver and executors that cannot be made, or not started: the status says why, and after a while
that it takes too long.
"""

import asyncio
import dataclasses

import pytest
from joinop import pod_events
from joinop.cache import ObjectCache
from joinop.config import Config
from joinop.decide import ObservedState, decide
from joinop.liveness import Liveness
from joinop.metrics import OperatorMetrics
from joinop.names import Object
from joinop.reconcile import Reconciler
from joinop.resources import CLAIM, STREAMJOIN

from joinlib.deploy import POD, Resource
from tests.deploy.operator.objects import AT, LATER, driver_pod, executor_pod, running, settle, stream_join
from tests.deploy.operator.test_node_loss import KEY, Server

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
    found = pod_events.problem(
        [event("SuccessfulCreate", at="2025-01-01T00:00:00Z"), event(reason, message)], "driver"
    )

    assert found is not None
    assert said in found.message
    assert found.message.startswith("the driver's pod cannot ")


def test_what_is_over_is_over() -> None:
    """Only the newest event counts; without events nothing is known."""
    assert (
        pod_events.problem([event("FailedCreate", QUOTA), event("SuccessfulCreate", at=LATER)], "driver")
        is None
    )
    assert pod_events.problem([], "driver") is None


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
        pod_problem=pod_events.problem([event("FailedCreate", QUOTA)], "driver"),
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


REFUSED = 'pods "late-exec-0a-exec-*" is forbidden: exceeded quota: small, requested: pods=1, limited: pods=2'
MOUNT = event("FailedMount", 'MountVolume.SetUp failed: secret "login" not found')


def waiting_pod(number: int) -> Object:
    """An executor that has a node, and no container."""
    return {**executor_pod(number, ready=False, phase="Pending"), "spec": {"nodeName": "near"}}


def short(refused: str | None = None, ready: int = 1, **more: object) -> ObservedState:
    """A driver that works, with fewer executors than the two that are wanted."""
    given = stream_join(driver__startWithin="5m")
    return ObservedState(
        given,
        {},
        pods=(driver_pod(given), *map(executor_pod, range(ready))),
        claims={"shared": True},
        scrape=running(executors={"ready": ready, "wanted": 2, "refused": refused}),
        now=NOW,
        at=AT,
        **more,  # type: ignore[arg-type]
    )


def test_executors_that_are_refused() -> None:
    """Degraded, with the fix and an event; how many work is in the message alone, so that no further one is news."""
    observed, decision = settle(short(REFUSED))
    said = f"the executor's pod cannot be created: {REFUSED}; ask for less in spec.executors, or have the"

    assert told(short(REFUSED), "Degraded")[:2] == ("True", "PodRefused")
    assert told(short(REFUSED), "Degraded")[2].startswith(said)
    assert decision.status["message"].startswith(f"1 of 2 executors: {said}")
    assert told(short(REFUSED), "Ready")[:2] == ("True", "Running")
    assert [event.reason for event in decision.events].count("PodRefused") == 1
    fewer = dataclasses.replace(short(REFUSED, ready=0), stream_join=observed.stream_join)
    assert "PodRefused" not in [event.reason for event in decide(fewer, Config()).events]
    assert told(fewer, "Ready")[:2] == ("False", "NoExecutors")

    well = dataclasses.replace(short(ready=2), stream_join=observed.stream_join)
    assert told(well, "Degraded")[0] == "False"
    assert [event.reason for event in decide(well, Config()).events] == ["Recovered"]


def test_executors_that_are_refused_while_the_driver_starts() -> None:
    """Spark waits for them before there is a query: it is told at once, and not once it runs without them."""
    given = stream_join(driver__startWithin="5m")
    told_by = running(phase="Starting", executors={"ready": 0, "wanted": 2, "refused": REFUSED})
    observed = dataclasses.replace(short(ready=0), pods=(driver_pod(given, ready=False),), scrape=told_by)
    assert told(observed, "Degraded")[:2] == ("True", "PodRefused")
    assert told(observed, "Ready")[:2] == ("False", "Starting")
    assert decide(observed, Config()).status["message"].startswith("the executor's pod cannot be created: ")


@pytest.mark.parametrize("refused", [None, 7, ["no"], {"why": "no"}])
def test_answers_that_are_no_refusal(refused: object) -> None:
    """Nothing is told of them."""
    assert told(short(refused), "Degraded")[0] == "False"  # type: ignore[arg-type]


@pytest.mark.parametrize(("message", "fix"), [
    ("maximum cpu usage per Container is 1, but limit is 2", "keep spec.executors within the namespace's LimitRange"),
    ("violates PodSecurity \"restricted\": hostPath", "use a volume that the namespace's Pod Security allows"),
    ("admission webhook \"a.b\" denied it", "change what the webhook refuses"),
    ("it has no reason", "it has no reason"),
])  # fmt: skip
def test_fixes_for_executors(message: str, fix: str) -> None:
    """They are those of the driver, in the section of executors."""
    assert fix in pod_events.refused(message, "executor").message


def test_executors_whose_events_are_read() -> None:
    """The first that has a node and no container; not those that run, leave, or wait for a node."""
    leaves = waiting_pod(1)
    leaves["metadata"]["deletionTimestamp"] = AT
    nowhere = executor_pod(2, ready=False, phase="Pending")

    assert pod_events.waiting_executor([driver_pod(), leaves, nowhere, executor_pod(3)]) is None
    assert pod_events.waiting_executor([waiting_pod(5), waiting_pod(4)]) == ("Pod", "late-exec-4")


def test_executors_that_do_not_start() -> None:
    """Their events say why."""
    observed = short(executor_problem=pod_events.problem([MOUNT], "executor"))

    assert told(observed, "Degraded")[1:] == (
        "FailedMount",
        'the executor\'s pod cannot start: MountVolume.SetUp failed: secret "login" not found; create what it names',
    )
    assert decide(observed, Config()).status["message"].startswith("1 of 2 executors: the executor's pod")


def test_a_volume_of_one_node() -> None:
    """It keeps executors from other nodes, and is there already."""
    found = pod_events.problem(
        [event("FailedAttachVolume", "Multi-Attach error for volume pvc-1")], "executor"
    )

    assert found is not None
    assert found.message.endswith("use a claim that several nodes can mount (ReadWriteMany)")


def test_deadline_of_executors() -> None:
    """It runs since not all have worked, whatever else is known; the driver, which goes on, has its own again."""
    observed, _ = settle(short())
    assert told(dataclasses.replace(observed, now=NOW + 299), "Degraded")[0] == "False"
    late, decision = settle(dataclasses.replace(observed, now=NOW + 301, at=LATER))
    assert told(late, "Progressing")[:2] == ("False", "ProgressDeadlineExceeded")
    assert told(late, "Degraded")[1:] == (
        "ProgressDeadlineExceeded",
        "executors are missing after 5m (spec.driver.startWithin); see their pods' events and logs",
    )
    assert told(late, "Ready")[:2] == ("True", "Running")
    assert [event.reason for event in decision.events] == ["ProgressDeadlineExceeded"]
    assert not decision.prune

    refused = dataclasses.replace(short(REFUSED), stream_join=late.stream_join, now=NOW + 302)
    assert told(refused, "Degraded")[1] == "PodRefused"
    assert told(refused, "Progressing")[1] == "ProgressDeadlineExceeded"
    assert told(refused, "Progressing")[2].startswith(
        "1 of 2 executors: the executor's pod cannot be created"
    )

    again = dataclasses.replace(late, pods=(), scrape=None)
    assert told(again, "Progressing")[:2] == ("True", "Starting")
    assert (
        told(dataclasses.replace(short(ready=2), stream_join=late.stream_join), "Progressing")[1] == "Settled"
    )


def test_a_driver_that_is_replaced_is_not_late() -> None:
    """For the executors of the one before."""
    late, _ = settle(dataclasses.replace(settle(short())[0], now=NOW + 301))
    other = dataclasses.replace(late, pods=(driver_pod(late.stream_join, config_hash="before"),))

    assert told(other, "Progressing")[:2] == ("True", "RollingOut")


def test_events_of_an_executor_reach_the_status() -> None:
    """Asked of the API server while it waits, and not more often than every few seconds."""
    asked: list[tuple[str, ...]] = []
    told: list[Object] = []

    class Telling(Server):
        async def events(self, *whose: str) -> list[Object]:
            asked.append(whose)
            return [MOUNT]

        async def get(self, kind: Resource, namespace: str | None, name: str) -> Object | None:
            return {} if kind is CLAIM else await super().get(kind, namespace, name)

        async def apply_status(self, namespace: str, name: str, status: Object) -> Object:
            told.append(status)
            return await super().apply_status(namespace, name, status)

    reconciler = Reconciler(
        Config(), ObjectCache(), Telling(), None, OperatorMetrics(), Liveness(), clock=lambda: 0.0
    )  # type: ignore[arg-type]
    for number, thing in enumerate((driver_pod(), waiting_pod(1))):
        thing["metadata"]["resourceVersion"] = str(number)
        reconciler.cache.put(POD, thing)
    reconciler.cache.put(STREAMJOIN, stream_join())

    async def twice() -> None:
        assert await reconciler.reconcile(KEY)
        assert await reconciler.reconcile(KEY)

    asyncio.run(twice())
    degraded = next(c for c in told[-1]["conditions"] if c["type"] == "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "FailedMount")
    assert asked == [("shop", "Pod", "late-exec-1")]
