"""What the driver asks the API server, and what it makes of the answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from jobs.cluster import Server, clear_executors
from jobs.guard import Guard
from joinlib.lease import LATE_S, ClusterLease, Conflict, Contender, Record, Unreachable
from joinlib.spec.model import Metadata, StreamJoin
from tests.unit.jobs.test_lease import Api, Clock

LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
STORED = {
    "metadata": {"name": "late-driver", "resourceVersion": "17"},
    "spec": {"holderIdentity": "uid-1", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 3},
}


@dataclass(frozen=True)
class Fake(Server):
    """Gives one answer, and notes what was asked."""

    status: int = 200
    answer: dict[str, Any] = field(default_factory=lambda: STORED)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        self.asked.append((method, path, body))
        return self.status, self.answer


def lease(**fake: Any) -> tuple[ClusterLease, Fake]:
    server = Fake("api", 443, **fake)
    owner = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "name": "late", "uid": "uid-0"}
    return ClusterLease(server, "shop", "late-driver", {"ownerReferences": [owner]}), server


def test_read() -> None:
    """A Lease that was released has no holder; one that is not there is None."""
    assert lease()[0].read() == Record("uid-1", "2026-01-01T00:00:00.000000Z", 3, "17")
    empty = {"metadata": {"resourceVersion": "1"}, "spec": {}}
    assert lease(answer=empty)[0].read() == Record("", "", 0, "1")
    assert lease(status=404, answer={})[0].read() is None


def test_write_replaces_exactly_what_was_read() -> None:
    """The version goes along, and so do owner and holder."""
    written, server = lease()
    written.write("uid-2", 4, "17")
    method, path, body = server.asked[0]
    assert (method, path) == ("PUT", f"{LEASES}/late-driver")
    assert body["metadata"]["resourceVersion"] == "17"
    assert body["metadata"]["ownerReferences"][0]["uid"] == "uid-0"
    assert (body["spec"]["holderIdentity"], body["spec"]["leaseTransitions"]) == ("uid-2", 4)


def test_write_makes_it_only_if_there_is_none() -> None:
    """Without a version."""
    written, server = lease()
    written.write("uid-2", 0, None)
    method, path, body = server.asked[0]
    assert (method, path) == ("POST", LEASES)
    assert "resourceVersion" not in body["metadata"]


@pytest.mark.parametrize(
    ("status", "error"), [(409, Conflict), (404, Conflict), (403, Unreachable), (500, Unreachable)]
)
def test_refusals(status: int, error: type[Exception]) -> None:
    """Somebody else was quicker; or the answer says nothing about the Lease."""
    with pytest.raises(error):
        lease(status=status, answer={"message": "no"})[0].write("uid-2", 4, "17")


def test_no_server() -> None:
    """Nobody answers, or the pod has no service account."""
    with pytest.raises(Unreachable):
        Server("127.0.0.1", 1).call("GET", "/")


@dataclass(frozen=True)
class Ending(Fake):
    """Executors of an earlier run, gone after so many looks; without end for those of a lost node."""

    looks: int = 0

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().call(method, path, body)
        there = [method for method, _, _ in self.asked].count("GET") <= self.looks
        return 200, {"items": [{"metadata": {"name": "late-exec-1"}}] if there else []}


def cleared(looks: int, stopping: Callable[[float], bool] = lambda _: False) -> tuple[bool, list[str]]:
    """What came of it, and what was asked but the looks."""
    server = Ending("api", 443, looks=looks)
    document = StreamJoin.model_construct(metadata=Metadata(name="late"))
    done = clear_executors(document, "shop", stopping, server)
    return done, [path.partition("executor")[2] for method, path, _ in server.asked if method == "DELETE"]


def test_executors_of_earlier_runs_are_awaited() -> None:
    """None joins beside them; those that no node ends go without its word; who is to stop does not wait."""
    pauses: list[float] = []
    assert cleared(3, lambda seconds: bool(pauses.append(seconds))) == (True, [""])
    assert len(pauses) == 3
    assert cleared(10**6) == (True, ["", "&gracePeriodSeconds=0"])
    assert cleared(10**6, lambda _: True) == (False, [""])


def test_nothing_is_committed_with_an_old_lease() -> None:
    """The guard ends the process instead, right before the commit."""
    api = Api(Clock())
    contender = Contender(api, "one", api.clock)
    died: list[str] = []
    guard = Guard(contender, lambda: died.append("x"))
    assert contender.take()
    api.clock.now += LATE_S
    guard.check()
    assert not died
    api.clock.now += 0.1
    guard.check()
    assert died
