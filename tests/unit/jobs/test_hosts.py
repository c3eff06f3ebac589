"""A name that somebody else leads to the driver, or to a forwarded port, gets none of its figures."""

import http.client
from collections.abc import Iterator

import pytest

from jobs.driver.serve import Answers, application
from jobs.hosts import of_driver
from jobs.server import HttpServer
from tests.patience import HUNG_S

GUARDED = ("/metrics", "/v1/status", "/v1/page")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """That of a driver without TLS."""
    answers = Answers(dict, bytes, lambda: True, lambda: True, lambda _: None, lambda: None, dict)
    server = HttpServer(application(answers, names=of_driver("late-driver-0", "shop")), 0)
    server.start()
    yield server.port
    server.stop()


def status(port: int, path: str, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HUNG_S)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    found = connection.getresponse().status
    connection.close()
    return found


@pytest.mark.parametrize(
    "host",
    [
        "localhost:8080",
        "LOCALHOST",
        "127.0.0.1:8080",
        "10.1.2.3",
        "[::1]:8080",
        "[fd00::7]",
        "late-driver:8080",
        "late-driver-0",
        "late-driver.shop.svc:8080",
        "late-driver.shop.svc.cluster.local.",
        "late-driver-0.late-driver.shop.svc",
    ],
)
def test_who_is_let_in(port: int, host: str) -> None:
    """A probe and Prometheus ask by addresses, people by a forwarded port, others by the Service."""
    assert [status(port, path, host) for path in GUARDED] == [200] * 3


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "late-driver.shop",  # .shop is a top-level domain
        "late-driver.other.svc",
        "late-driver.shop.svc.evil.example",
        "127.0.0.1:80:80",
        "[::1].evil.example",
        "",
    ],
)
def test_who_is_not(port: int, host: str) -> None:
    """The page itself and the probes tell nothing of the job."""
    assert [status(port, path, host) for path in GUARDED] == [403] * 3
    assert [status(port, path, host) for path in ("/", "/healthz", "/readyz")] == [200] * 3
