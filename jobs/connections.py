"""The connections of a server that runs beside a job: they take few of its file descriptors, and none for long.

    listening ──(room for one more)──► accepted ──(TLS)──► request ◄──► answer ──► closed

Law: at most `MOST` connections are open; others wait in the system's queue, which costs the job nothing. One on
which no request comes in `REQUEST_S`, or one that takes `ANSWER_S` until its answer, is closed.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler

MOST = 100
REQUEST_S = 10.0
ANSWER_S = 60.0
_PAUSE_S = 1.0  # before it accepts again, where the system has no descriptor left


class Guest(web.RequestHandler):
    """A connection that is closed when its time is over.

    Args:
        server: What answers.
        left: Is called when it has ended.
    """

    def __init__(self, server: web.Server, left: Callable[[], None]) -> None:
        self._clock = asyncio.get_running_loop()
        super().__init__(server, loop=self._clock, access_log=None)  # type: ignore[arg-type]  # none
        self._left, self._timer = left, self._clock.call_later(REQUEST_S, self._end)

    def may_take(self, seconds: float) -> None:
        """Allow so much time from now on."""
        self._timer.cancel()
        self._timer = self._clock.call_later(seconds, self._end)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.may_take(REQUEST_S)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._timer.cancel()
        self._left()

    def _end(self) -> None:
        if self.transport is not None:  # it is None before TLS, which has a limit of its own, and at the end
            self.transport.abort()


@web.middleware
async def in_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a request whose head has come, and wait for the next."""
    guest = request.protocol
    assert isinstance(guest, Guest)
    guest.may_take(ANSWER_S)
    try:
        return await handler(request)
    finally:
        guest.may_take(REQUEST_S)


async def accept(listening: socket.socket, server: web.Server, context: ssl.SSLContext | None) -> None:
    """Accept connections until this is cancelled."""
    loop, room = asyncio.get_running_loop(), asyncio.Semaphore(MOST)
    async with asyncio.TaskGroup() as begun:
        while True:
            await room.acquire()
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError:
                room.release()
                await asyncio.sleep(_PAUSE_S)
                continue
            begun.create_task(_begin(accepted, Guest(server, room.release), context))


async def _begin(accepted: socket.socket, guest: Guest, context: ssl.SSLContext | None) -> None:
    """Agree on TLS, if it is on; who does not is gone."""
    limit = REQUEST_S if context else None
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: guest, accepted, ssl=context, ssl_handshake_timeout=limit
        )
    except OSError:  # errors of TLS and of time are OSErrors too
        guest.connection_lost(None)
