"""Events go to an endpoint of OpenLineage, over HTTP and in a thread of its own.

Law: who offers an event never waits for the endpoint. What it does not take is lost, which the log says once for
each outage. The key is in no log, and goes to no other server: redirections are not followed.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from joinlib.deploy import LINEAGE_URL
from joinlib.errors import SpecError

_PATH = "api/v1/lineage"
_TIMEOUT_S = 5.0  # of one call
_WAITING = 100  # events
_LARGEST = 10_000  # bytes of an answer that are read

log = logging.getLogger("streamjoin.lineage")


@dataclass(frozen=True)
class Endpoint:
    """Where events go."""

    secure: bool
    host: str
    port: int | None
    path: str
    key: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """The endpoint as people name it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.secure}://{host}{f':{self.port}' if self.port else ''}{self.path}"


def endpoint(environment: Mapping[str, str]) -> Endpoint | None:
    """Return the endpoint that the variables of OpenLineage's clients name; None: no events are wanted.

    Raises:
        SpecError: OPENLINEAGE_URL is no address.
    """
    url = environment.get(LINEAGE_URL, "").strip()
    if not url or environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in ("http", "https") or parts.username is not None:
        raise SpecError(
            f"environment: {LINEAGE_URL} is not the address of a server; write http://HOST:PORT or https://HOST:PORT,"
            " without a login, which OPENLINEAGE_API_KEY can be"
        )
    path = f"{parts.path.rstrip('/')}/{environment.get('OPENLINEAGE_ENDPOINT', _PATH).strip('/')}"
    key = environment.get("OPENLINEAGE_API_KEY", "").strip() or None
    return Endpoint(parts.scheme == "https", host, port, path, key)


class EventSender(threading.Thread):
    """Sends what is offered, one event after the other. Start it first, and close it at the end."""

    def __init__(self, to: Endpoint, timeout_s: float = _TIMEOUT_S) -> None:
        super().__init__(name="lineage", daemon=True)
        self._to, self._timeout_s = to, timeout_s
        self._waiting: queue.Queue[Mapping[str, Any] | None] = queue.Queue(_WAITING)
        self._failing = False

    def offer(self, event: Mapping[str, Any]) -> None:
        """Send an event soon, or lose it if too many wait; return at once."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._lost("is too slow")

    def close(self, seconds: float) -> None:
        """Send what waits, for so long at most."""
        end = time.monotonic() + seconds
        try:
            self._waiting.put(None, timeout=seconds)
        except queue.Full:
            return
        self.join(max(0.0, end - time.monotonic()))

    def run(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._post(json.dumps(event).encode())
            except (OSError, HTTPException) as error:
                self._lost(getattr(error, "strerror", None) or str(error) or type(error).__name__)
            except ValueError:  # its text would quote a key that has characters which no header can have
                self._lost("cannot be asked with this path or this key")

    def _post(self, body: bytes) -> None:
        to = self._to
        kind = HTTPSConnection if to.secure else HTTPConnection
        connection = kind(to.host, to.port, timeout=self._timeout_s)
        headers = {"Content-Type": "application/json", "User-Agent": "streamjoin"}
        if to.key is not None:
            headers["Authorization"] = f"Bearer {to.key}"
        try:
            connection.request("POST", to.path, body, headers)
            answer = connection.getresponse()
            answer.read(_LARGEST)
        finally:
            connection.close()
        if answer.status >= 300:
            self._lost(f"answered {answer.status} {answer.reason}")
        elif self._failing:
            self._failing = False
            log.warning("lineage: %s takes events again", to.place)

    def _lost(self, why: str) -> None:
        if not self._failing:
            log.warning(
                "lineage: %s %s; events are lost until it takes them, rows are not", self._to.place, why
            )
        self._failing = True
