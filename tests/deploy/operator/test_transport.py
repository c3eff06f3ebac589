"""The operator and a driver whose HTTP is secured, with real certificates: who is let in, and whom the
operator believes.
"""

import asyncio
import base64
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from joinop.driver_client import DriverClient
from joinop.transport import DriverTransport

from jobs import connections
from jobs.driver.serve import Answers, application
from jobs.server import HttpServer
from joinlib.errors import SpecError
from joinlib.scale import ExecutorRequest
from tests.deploy.operator.objects import driver_pod
from tests.patience import HUNG_S

TOKEN = "s3cret"
_MAKE = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=driver -keyout tls.key -out tls.csr
printf subjectAltName=DNS:NAME > names
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out tls.crt
"""


def certificates(folder: Path, name: str) -> Path:
    folder.mkdir()
    subprocess.run(["sh", "-ec", _MAKE.replace("NAME", name)], cwd=folder, check=True, capture_output=True)
    return folder


@dataclass
class Secrets:
    """Stands for the API server: the Secrets of a namespace."""

    held: dict[str, dict[str, str]]
    asked: list[str] = field(default_factory=list)

    async def get(self, _: object, namespace: str, name: str) -> dict[str, Any] | None:
        assert namespace == "shop"
        self.asked.append(name)
        if name not in self.held:
            return None
        return {
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in self.held[name].items()}
        }


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates(tmp_path_factory.mktemp("tls") / "right", "late-driver.shop.svc")


@pytest.fixture
def server(right: Path) -> Iterator[HttpServer]:
    """A driver's HTTP with that certificate."""
    answers = Answers(
        lambda: {"phase": "Running"},
        lambda: b"figures 1\n",
        lambda: True,
        lambda: True,
        lambda _: None,
        lambda: TOKEN,
        dict,
    )
    made = HttpServer(application(answers, open_to_all=False), 0, right)
    made.start()
    yield made
    made.stop()


def told(server: HttpServer, secrets: Secrets) -> tuple[str, str, str]:
    """What the operator hears twice, or why not; and what becomes of a wish."""

    async def run() -> tuple[str, str, str]:
        drivers = DriverClient(server.port, reach=DriverTransport(secrets, "drivers-tls"))  # type: ignore[arg-type]
        try:
            pod = driver_pod(podIP="127.0.0.1")
            scrapes = [await drivers.status(pod) for _ in range(2)]
            asked = ExecutorRequest(3, "rows wait")
            return *(r.error or r.phase for r in scrapes), await drivers.request_executors(pod, asked, TOKEN)  # type: ignore[return-value]
        finally:
            await drivers.close()

    return asyncio.run(run())


def held(authority: Path, token: str = TOKEN) -> Secrets:
    return Secrets(
        {"drivers-tls": {"ca.crt": (authority / "ca.crt").read_text()}, "late-token": {"token": token}}
    )


def test_the_operator_is_let_in(server: HttpServer, right: Path) -> None:
    """It dials an address and checks the Service's name; Secrets are read once a minute."""
    secrets = held(right)
    assert told(server, secrets) == ("Running", "Running", "")
    assert secrets.asked == ["drivers-tls", "late-token"]


def test_a_driver_that_is_not_the_jobs(server: HttpServer, right: Path, tmp_path: Path) -> None:
    """Another authority, another name, no Secret: a word each time, and no token goes out."""
    other = certificates(tmp_path / "other", "late-driver.shop.svc")
    assert "CERTIFICATE_VERIFY_FAILED" in told(server, held(other))[0]
    assert "the Secret drivers-tls of this namespace has no ca.crt" in told(server, Secrets({}))[0]
    wrong = certificates(tmp_path / "wrong", "other-driver.shop.svc")
    impostor = HttpServer(application(Answers(*[lambda *_: None] * 7)), 0, wrong)  # type: ignore[arg-type]
    impostor.start()
    try:
        assert "Hostname mismatch" in told(impostor, held(wrong))[2]
    finally:
        impostor.stop()


def test_who_never_agrees_on_tls_leaves_room(right: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it says nothing or nonsense; after its time the operator is let in."""
    monkeypatch.setattr(connections, "MOST", 2)
    monkeypatch.setattr(connections, "REQUEST_S", 0.5)
    answers = Answers(*[lambda *_: {"phase": "Running"}] * 5, lambda: TOKEN, dict)  # type: ignore[arg-type]
    server = HttpServer(application(answers), 0, right)
    server.start()
    try:
        with ExitStack() as stack:
            for said in (b"", b"", b"GET / HTTP/1.1", b"GET / HTTP/1.1"):
                silent = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                silent.sendall(said)
            assert told(server, held(right))[0] == "Running"
    finally:
        server.stop()


def test_who_has_no_token_sees_that_it_lives(server: HttpServer, right: Path) -> None:
    """Probes need none; status and figures do. Nothing is answered in clear."""
    trusting = ssl.create_default_context(cafile=right / "ca.crt")
    trusting.check_hostname = False  # as a kubelet

    def status(path: str, token: str = "") -> int:
        url = f"https://127.0.0.1:{server.port}{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        try:
            return int(urllib.request.urlopen(request, timeout=HUNG_S, context=trusting).status)
        except urllib.error.HTTPError as error:
            return error.code

    assert [status(path) for path in ("/healthz", "/readyz", "/metrics", "/v1/status")] == [
        200,
        200,
        401,
        401,
    ]
    assert [status(path, "wrong") for path in ("/metrics", "/v1/status")] == [401, 401]
    assert [status(path, TOKEN) for path in ("/metrics", "/v1/status")] == [200, 200]
    with pytest.raises(OSError):  # noqa: PT011  the connection is cut, however that shows
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=HUNG_S)


def test_a_certificate_that_is_replaced_is_served(server: HttpServer, right: Path, tmp_path: Path) -> None:
    """Without a restart; half of a new one is passed over."""
    assert server._tls is not None
    newer = certificates(tmp_path / "newer", "late-driver.shop.svc")
    server._tls._folder = newer
    (newer / "tls.key").rename(newer / "kept")
    server._loop.call_soon_threadsafe(server._renew)
    assert told(server, held(right))[0] == "Running"
    (newer / "kept").rename(newer / "tls.key")
    server._loop.call_soon_threadsafe(server._renew)
    assert told(server, held(newer))[0] == "Running"


def test_no_certificate(tmp_path: Path) -> None:
    """The job does not begin in clear."""
    with pytest.raises(
        SpecError, match=r"tls\.crt and tls\.key are not a certificate.*jobs\.http\.tlsSecret"
    ):
        HttpServer(application(Answers(*[lambda *_: None] * 7)), 0, tmp_path)  # type: ignore[arg-type]
