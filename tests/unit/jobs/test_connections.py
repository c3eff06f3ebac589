"""A server beside a run: however many connect to it and say nothing, the run keeps its file descriptors."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection

import pytest
from aiohttp import web

from jobs import connections
from jobs.server import HttpServer
from tests.patience import HUNG_S


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """One that has room for three, and waits half a second for a request."""
    monkeypatch.setattr(connections, "MOST", 3)
    monkeypatch.setattr(connections, "REQUEST_S", 0.5)
    app = web.Application()
    app.add_routes([web.get("/", _hello), web.post("/", _hello)])
    served = HttpServer(app, 0, host="127.0.0.1")
    served.start()
    yield served
    served.stop()


async def _hello(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(text="hello")


def test_they_take_few_descriptors(server: HttpServer) -> None:
    """And who waits has an answer once they are gone."""
    before = _descriptors()
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        time.sleep(0.2)
        assert _descriptors() - before - 50 <= 3  # 50 are this end's
    assert _asked(server) == "hello"


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HTTP/1.1\r\nHost: a\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"],
)
def test_who_brings_no_whole_request_is_closed(
    server: HttpServer, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ANSWER_S", 0.5)
    with socket.create_connection(("127.0.0.1", server.port), timeout=HUNG_S) as held:
        held.sendall(said)
        assert held.recv(100) == b""


def test_who_asks_again_in_time_stays(server: HttpServer) -> None:
    """Longer than a connection without requests."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=HUNG_S)
    for _ in range(5):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"hello"
        kept = connection.sock
        time.sleep(0.2)
    assert kept is connection.sock
    connection.close()


def _asked(server: HttpServer) -> str:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=HUNG_S)
    connection.request("GET", "/")
    return connection.getresponse().read().decode()


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
