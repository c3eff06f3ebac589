"""What is told to other servers beside a run: it goes over HTTP, in a thread of its own.

Law: who offers something never waits for the server. What it does not take is lost, which the log says once for
each outage. Headers are in no log, and go to no other server: redirections are not followed.
"""

import logging
import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection, responses
from typing import Generic, TypeVar

from jobs.endpoint import Endpoint
from joinlib.errors import SpecError

_TIMEOUT_S = 5.0  # of one call
_LAST_S = 2 * _TIMEOUT_S  # how long an end waits: for a call on its way, and for one with the end itself
_WAITING = 100  # things
_LARGEST = 10_000  # bytes of an answer that are read
_LOGIN_REFUSED = (401, 403)

Thing = TypeVar("Thing")
Encode = Callable[[Sequence[Thing]], Iterable[bytes]]  # things, oldest first, become bodies of calls
Missed = Callable[[bytes], str]  # what the body of a good answer says was not taken; empty: all was


@dataclass(frozen=True)
class Wording:
    """What is sent, in the words of the log."""

    about: str  # lineage
    things: str  # events


class Poster(threading.Thread, Generic[Thing]):
    """Sends what is offered. Start it first, and close it at the end.

    Args:
        to: The server.
        told: The words for what is sent.
        encode: Makes the bodies of calls, in this thread, of all that has gathered.
        missed: Reads in a good answer what was not taken all the same.
        gather_s: How long after the first thing of a call others may join it.
        timeout_s: Of one call.
    """

    def __init__(
        self,
        to: Endpoint,
        told: Wording,
        encode: Encode[Thing],
        missed: Missed = lambda _: "",
        gather_s: float = 0.0,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        super().__init__(name=told.about, daemon=True)
        self._to, self._told, self._encode, self._missed = to, told, encode, missed
        self._gather_s, self._timeout_s = gather_s, timeout_s
        self._waiting: queue.Queue[Thing | None] = queue.Queue(_WAITING)
        self._closing = threading.Event()
        self._tls: ssl.SSLContext | None = None
        self.outage = ""  # what is wrong with the server, while it does not take what is sent
        self._log = logging.getLogger(f"streamjoin.{told.about}")

    def offer(self, thing: Thing) -> None:
        """Send a thing soon, or lose it if too many wait; return at once."""
        try:
            self._waiting.put_nowait(thing)
        except queue.Full:
            self._lost("is too slow")

    def close(self, seconds: float = _LAST_S) -> None:
        """Send what waits, for so long at most. What is left is lost, which the log says."""
        end = time.monotonic() + seconds
        self._closing.set()
        with suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
            self.join(max(0.0, end - time.monotonic()))
        if self.is_alive():
            self._lost("is too slow")

    def run(self) -> None:
        more = True
        while more:
            found = [self._waiting.get()]
            self._closing.wait(self._gather_s)
            with suppress(queue.Empty):
                while True:
                    found.append(self._waiting.get_nowait())
            more = None not in found
            for body in self._encode([thing for thing in found if thing is not None]):
                self._try(body)

    def _try(self, body: bytes) -> None:
        try:
            self._post(body)
        except ssl.SSLError as error:
            self._tls = None
            self._lost(self._to.tls.refused(error, self._to.variables.url))
        except SpecError as error:  # of a file that was there before
            self._lost(f"is not asked ({error})")
        except (OSError, HTTPException) as error:
            self._lost(getattr(error, "strerror", None) or str(error) or type(error).__name__)
        except ValueError:  # its text would quote a header that has characters which none can have
            self._lost("cannot be asked with this path or these headers")

    def _post(self, body: bytes) -> None:
        to = self._to
        connection = self._connection()
        try:
            connection.request("POST", to.path, body, {"User-Agent": "streamjoin", **to.headers})
            answer = connection.getresponse()
            said = answer.read(_LARGEST)
        finally:
            connection.close()
        if answer.status >= 300:
            self._lost(self._answered(answer.status))
        elif missed := self._missed(said):
            self._lost(f"refused {missed}")
        elif self.outage:
            self.outage = ""
            self._log.warning("%s: %s takes %s again", self._told.about, to.place, self._told.things)

    def _answered(self, status: int) -> str:
        """Return what a refusal means. In the words of HTTP: those of the server may quote a login."""
        said = f"answered {status} {responses.get(status, '')}".rstrip()
        login = self._to.variables.login
        return f"{said}; correct the login in {login}" if status in _LOGIN_REFUSED else said

    def _connection(self) -> HTTPConnection:
        to = self._to
        if to.secure:
            self._tls = self._tls or to.tls.context()
            return HTTPSConnection(to.host, to.port, timeout=self._timeout_s, context=self._tls)
        return HTTPConnection(to.host, to.port, timeout=self._timeout_s)

    def _lost(self, why: str) -> None:
        if not self.outage:
            self.outage = (
                f"{self._told.about}: {self._to.place} {why}; {self._told.things} are lost until it takes them,"
                " rows are not"
            )
            self._log.warning(self.outage)
