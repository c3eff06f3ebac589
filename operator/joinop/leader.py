"""Leader election: of several operators only the holder of the Lease acts; the others wait, and watch
nothing.

    leader    renews every 2 s; may act for 10 s after it sent the last renewal that was answered, then exits
    others    take the Lease when it was released, or when they have seen no renewal for 15 s

Law: an operator that another one may have replaced sends no request that changes anything. `check` is
called right before each such request, so an operator that was frozen exits there. Renewals have their own
thread and connections: work does not delay them.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable

from kubernetes import dynamic

from joinlib.deploy import LEASE
from joinlib.lease import LATE_S, ClusterLease, Conflict, Contender, Lost, Unreachable, clock
from joinop import names
from joinop.credentials import blocking_client

log = logging.getLogger("joinop")
_RENEW_S = 2.0


class Leader:
    """A candidate for leadership. `die` ends the process, and does not return."""

    def __init__(self, contender: Contender, die: Callable[[str], None]) -> None:
        self._contender, self._die = contender, die
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="lease", daemon=True)

    async def elected(self) -> None:
        """Wait until this operator leads."""
        said = ""
        while not await asyncio.to_thread(self._contender.take):
            if self._contender.hindered != said:
                said = self._contender.hindered
                log.info("waiting to lead: %s", said)
            await asyncio.sleep(_RENEW_S)
        log.info("this operator leads")
        self._keeper.start()

    def check(self) -> None:
        """Return only if no other operator can be leading."""
        if self._contender.age > LATE_S:
            self._die(f"the lease was not renewed for {self._contender.age:.0f} s")

    async def resign(self) -> None:
        """Release the Lease, so that the next operator need not wait.

        Nothing of this one may act any longer.
        """
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
    leases = dynamic.Resource(**LEASE.known, client=blocking_client())
    found = ClusterLease(leases, namespace, name, {"labels": names.OPERATOR})
    return Leader(Contender(found, me, clock), _end)


def _end(why: str) -> None:
    log.error("this operator no longer leads: %s", why)
    os._exit(1)  # without cleaning up: another operator may be at work
