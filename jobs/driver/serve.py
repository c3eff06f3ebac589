"""The driver's HTTP server: four resources to read, one to change.

    GET  /healthz  /readyz
    GET  /metrics  /v1/status            with the job's token if TLS is on
    POST /v1/executors {"total": n}      with the job's token

It runs on an event loop in its own thread. What it returns are plain values that the driver has prepared: no
response waits for Spark.
"""

import asyncio
import contextlib
import hmac
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from joinlib.errors import SpecError

_BODY_BYTES = 4096
_RENEW_S = 600.0
_REALM = 'Bearer realm="streamjoin"'


@dataclass(frozen=True)
class Answers:
    """The callbacks behind the resources."""

    status: Callable[[], dict[str, Any]]
    metrics: Callable[[], bytes]
    healthy: Callable[[], bool]
    ready: Callable[[], bool]
    scale: Callable[[int], None]  # raises SpecError if the number is out of bounds
    # Called for each request, since the token may be replaced. None means no token: every change is refused.
    token: Callable[[], str | None]


def application(answers: Answers, *, open_to_all: bool = True) -> web.Application:
    """Return the web application. `open_to_all` says whether metrics and status need no token.

    Any other path gets 404, a wrong method 405, and a body that is too large 413.
    """

    def reader(request: web.Request) -> None:
        if not open_to_all:
            _admit(request, answers.token())

    async def metrics(request: web.Request) -> web.Response:
        reader(request)
        return web.Response(body=answers.metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthy(_: web.Request) -> web.Response:
        return _yes_or_no(answers.healthy())

    async def ready(_: web.Request) -> web.Response:
        return _yes_or_no(answers.ready())

    async def status(request: web.Request) -> web.Response:
        reader(request)
        return web.json_response(answers.status())

    async def executors(request: web.Request) -> web.Response:
        _admit(request, answers.token())
        total = _total(await request.read())
        try:
            await asyncio.to_thread(answers.scale, total)
        except SpecError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        return web.json_response({"total": total})

    app = web.Application(client_max_size=_BODY_BYTES)
    app.add_routes(
        [
            web.get("/metrics", metrics),
            web.get("/healthz", healthy),
            web.get("/readyz", ready),
            web.get("/v1/status", status),
            web.post("/v1/executors", executors),
        ]
    )
    return app


class HttpServer:
    """Serves an application on a port, from `start` to `stop`.

    Args:
        app: The application.
        port: The port; 0 means any. The attribute `port` is the one in use.
        tls: A folder with tls.crt and tls.key, which may be replaced while it runs; None means no TLS.

    Raises:
        SpecError: The files in `tls` are not a certificate and its key.
    """

    def __init__(self, app: web.Application, port: int, tls: Path | None = None) -> None:
        self._app, self.port = app, port
        self._tls = _Certificate(tls) if tls else None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)

    def start(self) -> None:
        """Start listening.

        Raises:
            OSError: The port cannot be used.
        """
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _listen(self) -> None:
        self._runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        listening = _listening(self.port)
        self.port = listening.getsockname()[1]
        context = self._tls.context if self._tls else None
        await web.SockSite(self._runner, listening, ssl_context=context).start()
        self._renew()

    def _renew(self) -> None:
        """Load a certificate that was replaced meanwhile; later connections see it."""
        if self._tls is not None:
            with contextlib.suppress(SpecError):  # half replaced: keep the old one until the next reload
                self._tls.read()
            self._loop.call_later(_RENEW_S, self._renew)


class _Certificate:
    """The certificate in a folder, as it was when last read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.read()

    def read(self) -> None:
        try:
            files = self._folder / "tls.crt", self._folder / "tls.key"
            # Load into another context first: a pair that does not fit would be taken over by half.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*files)
            self.context.load_cert_chain(*files)
        except OSError as error:  # errors of TLS are OSErrors too
            raise SpecError(
                f"{self._folder}: tls.crt and tls.key are not a certificate and its key ({error}); correct"
                " the Secret that jobs.http.tlsSecret of the chart names"
            ) from error


def _listening(port: int) -> socket.socket:
    """Return one socket for IPv4 and IPv6, if both exist: a port that the system chooses is then the same."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def _yes_or_no(yes: bool) -> web.Response:
    return web.Response(text="ok\n") if yes else web.Response(text="no\n", status=503)


def _admit(request: web.Request, token: str | None) -> None:
    """Refuse a request without the token, in a time that does not depend on how much of it is right."""
    given = request.headers.get("Authorization", "")
    if not token or not hmac.compare_digest(given.encode(errors="replace"), f"Bearer {token}".encode()):
        raise web.HTTPUnauthorized(text="this needs the job's token\n", headers={"WWW-Authenticate": _REALM})


def _total(body: bytes) -> int:
    try:
        match json.loads(body):
            case {"total": int(total), **rest} if not rest and not isinstance(total, bool):
                return total
    except ValueError:
        pass
    raise web.HTTPBadRequest(text='write {"total": n}\n')
