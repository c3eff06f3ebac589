"""Which of several operators acts? The one that holds the Lease; the others wait, and watch nothing.

    leader    renews every 2 s, and may act for 10 s after it sent the last renewal that was answered; then it ends itself
    others    take the Lease when it was given back, or when they have seen no renewal for 15 s (`joinlib.lease`)

Law: no request that changes anything is sent by an operator that another may have followed. Each asks `check` right before;
who was frozen and wakes ends there. Renewals have a thread and connections of their own: work does not keep them waiting.
"""

import asyncio
import contextlib
import json
import logging
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from joinlib.lease import LATE_S, ClusterLease, Conflict, Contender, Lost, Unreachable
from joinop import login, names

log = logging.getLogger("joinop")
_RENEW_S, _TIMEOUT_S = 2.0, 2.5


class Leader:
    """One operator of several. `die` ends the process, and does not return."""

    def __init__(self, contender: Contender, die: Callable[[str], None]) -> None:
        self._contender, self._die = contender, die
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="lease", daemon=True)

    async def elected(self) -> None:
        """Waits until this operator leads."""
        said = ""
        while not await asyncio.to_thread(self._contender.take):
            if self._contender.hindered != said:
                said = self._contender.hindered
                log.info("waiting to lead: %s", said)
            await asyncio.sleep(_RENEW_S)
        log.info("this operator leads")
        self._keeper.start()

    def check(self) -> None:
        """Returns only if no other operator can lead."""
        if self._contender.age > LATE_S:
            self._die(f"the lease was not renewed for {self._contender.age:.0f} s")

    async def resign(self) -> None:
        """Nothing of this operator acts any longer: whoever waits need not wait longer."""
        self._over.set()
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        self._keeper.join()
        with contextlib.suppress(Conflict, Unreachable):
            self._contender.release()

    def _keep(self) -> None:
        while not self._over.wait(_RENEW_S):
            try:
                self._contender.renew()
            except Lost as error:
                self._die(str(error))
            self.check()


def leader(lease: str, me: str) -> Leader:
    """A candidate for a Lease, `NAMESPACE/NAME`."""
    namespace, _, name = lease.partition("/")
    found = ClusterLease(_Server(), namespace, name, {"labels": names.OPERATOR})
    return Leader(Contender(found, me, _clock), _end)


def _clock() -> float:
    """Goes on while the machine sleeps: others do not wait for it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _end(why: str) -> None:
    log.error("this operator no longer leads: %s", why)
    os._exit(1)  # nothing is finished: another may be at it


class _Server:
    """The API server, asked without the event loop."""

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON; Unreachable if there is no answer."""
        data = None if body is None else json.dumps(body).encode()
        try:
            info = login.connection()
            headers = {**info.as_http_headers(), "Content-Type": "application/json"}
            url = info.server.rstrip("/") + path
            request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310  the API server's
            trust = urllib.request.HTTPSHandler(context=info.as_ssl_context())
            with _opened(
                urllib.request.build_opener(urllib.request.ProxyHandler({}), trust), request
            ) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except (OSError, HTTPException, ValueError) as error:
            raise Unreachable(f"API server: {error}") from error


def _opened(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> Any:
    """The answer; one that says no is an answer as well."""
    try:
        return opener.open(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        return error
