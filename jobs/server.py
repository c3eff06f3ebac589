"""A HTTP server on an event loop in a thread of its own, beside a run."""

import asyncio
import contextlib
import socket
import ssl
import threading
from pathlib import Path

from aiohttp import web

from jobs.connections import accept, in_time
from joinlib.errors import SpecError

_RENEW_S = 600.0


class HttpServer:
    """Serves an application on a port, from `start` to `stop`.

    Args:
        app: The application.
        port: The port; 0 means any. The attribute `port` is the one in use.
        host: The address to listen at; empty means all, of IPv4 and IPv6.
        tls: A folder with tls.crt and tls.key, which may be replaced while it runs; None means no TLS.

    Raises:
        SpecError: The files in `tls` are not a certificate and its key.
    """

    def __init__(self, app: web.Application, port: int, tls: Path | None = None, host: str = "") -> None:
        app.middlewares.append(in_time)
        self._app, self.port, self._host = app, port, host
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
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _listen(self) -> None:
        self._runner = web.AppRunner(self._app, shutdown_timeout=1)
        await self._runner.setup()
        self._socket = _listening(self._host, self.port)
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        context = self._tls.context if self._tls else None
        assert self._runner.server is not None
        self._accepting = self._loop.create_task(accept(self._socket, self._runner.server, context))
        self._renew()

    async def _close(self) -> None:
        self._accepting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._accepting
        self._socket.close()
        await self._runner.cleanup()

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


def _listening(host: str, port: int) -> socket.socket:
    """Return one socket, for IPv4 and IPv6 if both are meant and exist: a port that the system chooses is then the same."""
    if host:
        return socket.create_server((host, port))
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))
