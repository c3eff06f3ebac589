"""What the driver asks the API server, and what it makes of the answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from jobs.cluster import Server
from jobs.guard import Guard
from joinlib.lease import LATE_S, ClusterLease, Conflict, Contender, Record, Unreachable
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
