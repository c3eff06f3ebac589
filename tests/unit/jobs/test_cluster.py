"""What the driver asks of the API server, through the official client, and what it makes of the answers."""

import logging
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kubernetes.config import incluster_config

from jobs.driver.cluster import clear_executors, connect, lease_of
from jobs.driver.guard import LeaseGuard
from joinlib.lease import LATE_S, ClusterLease, Conflict, Contender, Record, Unreachable
from joinlib.spec.model import Metadata, StreamJoin
from tests.jsonserver import Answer, Request, serving_json
from tests.unit.jobs.test_lease import Api, Clock

LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
PODS = "/api/v1/namespaces/shop/pods"
STORED = {
    "kind": "Lease",
    "metadata": {"name": "late-driver", "resourceVersion": "17"},
    "spec": {"holderIdentity": "uid-1", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 3},
}
DOCUMENT = StreamJoin.model_construct(
    api_version="streamjoin.dev/v1alpha1", kind="StreamJoin", metadata=Metadata(name="late")
)


@dataclass
class Server:
    """An API server of one pod's cluster: a service account, and answers as the test wishes."""

    account: Path
    answer: Callable[[Request], Answer] = lambda _: (200, STORED)
    asked: list[Request] = field(default_factory=list)
    port: int = 0

    def answered(self, request: Request) -> Answer:
        self.asked.append(request)
        return self.answer(request)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A service account: an authority, which is the server's certificate too, and a token."""
    folder = tmp_path_factory.mktemp("account")
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=api"
        " -addext subjectAltName=IP:127.0.0.1 -keyout key -out ca.crt",
        shell=True,
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def server(account: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    (account / "token").write_text("first-token")
    made, tls = Server(account), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(account / "ca.crt", account / "key")
    with serving_json(made.answered, tls) as made.port:
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(account / "token"))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(account / "ca.crt"))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(made.port))
        yield made


def lease() -> ClusterLease:
    return lease_of(DOCUMENT, "shop", "uid-0")


def test_read(server: Server) -> None:
    """A Lease that was released has no holder; one that is not there is None."""
    assert lease().read() == Record("uid-1", "2026-01-01T00:00:00.000000Z", 3, "17")
    server.answer = lambda _: (200, {"kind": "Lease", "metadata": {"resourceVersion": "1"}, "spec": {}})
    assert lease().read() == Record("", "", 0, "1")
    server.answer = lambda _: (404, {"message": "there is none"})
    assert lease().read() is None


def test_write_replaces_exactly_what_was_read(server: Server) -> None:
    """The version goes along, and so do owner, labels and holder; nothing else is asked, such as what kinds
    there are.
    """
    lease().write("uid-2", 4, "17")
    (request,) = server.asked

    assert (request.method, request.path) == ("PUT", f"{LEASES}/late-driver")
    assert request.body["metadata"]["resourceVersion"] == "17"
    assert request.body["metadata"]["ownerReferences"][0]["uid"] == "uid-0"
    assert request.body["metadata"]["labels"]["app.kubernetes.io/instance"] == "late"
    spec = request.body["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == (
        "uid-2",
        4,
        15,
    )
    assert len(spec["renewTime"]) == len("2026-01-01T00:00:00.000000Z"), "Kubernetes wants six digits"


def test_write_makes_it_only_if_there_is_none(server: Server) -> None:
    """Without a version."""
    lease().write("uid-2", 0, None)
    (request,) = server.asked

    assert (request.method, request.path) == ("POST", LEASES)
    assert "resourceVersion" not in request.body["metadata"]


@pytest.mark.parametrize(
    ("status", "error"), [(409, Conflict), (404, Conflict), (403, Unreachable), (500, Unreachable)]
)
def test_refusals(server: Server, status: int, error: type[Exception]) -> None:
    """Somebody else was quicker, or the answer says nothing of the Lease.

    A request is sent once, and its message is told.
    """
    server.answer = lambda _: (status, {"message": "leases is forbidden"})
    with pytest.raises(error, match=f"API server: {status} leases is forbidden"):
        lease().write("uid-2", 4, "17")
    assert len(server.asked) == 1


def test_an_answer_that_says_nothing(server: Server) -> None:
    """What is no Lease is no answer."""
    server.answer = lambda _: (200, {"kind": "Lease", "items": []})
    with pytest.raises(Unreachable):
        lease().read()


def test_no_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers: it is tried once, for who tries again and again is late."""
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(Unreachable, match="API server"):
        lease().read()


def test_a_connection_that_breaks(server: Server) -> None:
    """The request is sent once: Contender decides when to send another one."""

    def broken(_: Request) -> Answer:
        raise ConnectionAbortedError

    server.answer = broken
    with pytest.raises(Unreachable, match="API server"):
        lease().write("uid-2", 4, "17")
    assert len(server.asked) == 1


def test_no_proxy_lies_between(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment may name one, for other hosts."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert lease().read() is not None


def test_the_token_is_read_again(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    """The kubelet replaces it; no line of any log holds it."""
    caplog.set_level(logging.DEBUG)
    held = lease()
    held.read()
    (server.account / "token").write_text("second-token")
    loader = held.api.client.configuration.refresh_api_key_hook.__closure__[0].cell_contents
    loader.token_expires_at = loader.token_expires_at.min  # a minute is over
    held.read()

    assert [request.token.split()[1] for request in server.asked] == ["first-token", "second-token"]
    assert "-token" not in caplog.text


def test_another_authority_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server must prove itself by the service account's certificate."""
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=other"
        " -keyout key -out ca.crt",
        shell=True,
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        lease().read()
    assert server.asked == []


def cleared(
    server: Server, looks: int, stopping: Callable[[float], bool] = lambda _: False
) -> tuple[bool, list[dict[str, str]]]:
    """Executors of an earlier run that are gone after so many looks: what came of it, and the queries of
    what was deleted.
    """
    server.asked.clear()

    def answer(request: Request) -> Answer:
        there = [each.method for each in server.asked].count("GET") <= looks
        items = [{"metadata": {"name": "late-exec-1"}}] if there else []
        return 200, {"kind": "PodList", "apiVersion": "v1", "items": items}

    server.answer = answer
    done = clear_executors(DOCUMENT, "shop", stopping, connect())
    assert {request.path for request in server.asked} == {PODS}
    return done, [request.query for request in server.asked if request.method == "DELETE"]


def test_executors_of_earlier_runs_are_awaited(server: Server) -> None:
    """None joins beside them; those that no node ends go without its word; who is to stop does not wait."""
    chosen = {
        "labelSelector": "app.kubernetes.io/name=streamjoin,app.kubernetes.io/instance=late,app.kubernetes.io/component=executor"
    }
    pauses: list[float] = []
    assert cleared(server, 3, lambda seconds: bool(pauses.append(seconds))) == (True, [chosen])
    assert len(pauses) == 3
    assert cleared(server, 10**6) == (True, [chosen, chosen | {"gracePeriodSeconds": "0"}])
    assert cleared(server, 10**6, lambda _: True) == (False, [chosen])


def test_executors_that_may_not_be_deleted(server: Server) -> None:
    """What is missing is said."""
    server.answer = lambda _: (403, {"message": "pods is forbidden"})
    with pytest.raises(Unreachable, match="403 pods is forbidden"):
        clear_executors(DOCUMENT, "shop", lambda _: False)


def test_nothing_is_committed_with_an_old_lease() -> None:
    """The guard ends the process instead, right before the commit."""
    api = Api(Clock())
    contender = Contender(api, "one", api.clock)
    died: list[str] = []
    guard = LeaseGuard(contender, lambda: died.append("x"))
    assert contender.take()
    api.clock.now += LATE_S
    guard.check()
    assert not died
    api.clock.now += 0.1
    guard.check()
    assert died
