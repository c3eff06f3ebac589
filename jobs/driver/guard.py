"""Guards the driver's Lease: taken before Spark starts, renewed by a thread, released when the query is over.

A driver that cannot keep it dies at once, with all that it has started: `SIGKILL` to the process group, so
that nothing is committed in the meantime.
"""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable

from jobs.driver.watchdog import Watchdog
from joinlib.lease import LATE_S, Conflict, Contender, Lost, Unreachable

_AGAIN_S, _RENEW_S = 1.0, 3.0
log = logging.getLogger("streamjoin.driver")


def end_all() -> None:
    """Kill this process and all others of its group, without a chance to write."""
    os.kill(0, signal.SIGKILL)


class LeaseGuard:
    """Holds the Lease of one contender, and ends the driver when it is lost."""

    def __init__(self, contender: Contender, die: Callable[[], None] = end_all) -> None:
        self._contender, self._die = contender, die
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._watchdog: Watchdog | None = None

    def hold(self, stopping: threading.Event, waits: Callable[[str], None]) -> bool:
        """Wait for the Lease; return False if asked to stop first.

        `waits` is called with the reason for waiting.
        """
        while not self._contender.take():
            waits(self._contender.hindered)
            if stopping.wait(_AGAIN_S):
                return False
        self._watchdog = Watchdog(LATE_S)
        self._watchdog.tell(self._contender.sent)
        self._keeper.start()
        return True

    def check(self) -> None:
        """Return only if no other driver can have the Lease. Call it right before something is committed."""
        if self._contender.age > LATE_S:
            log.error("the lease is %.1f s old", self._contender.age)
            self._die()

    def release(self) -> None:
        """Release the Lease. Nothing of this driver may write any longer."""
        self._over.set()
        if self._watchdog is None:
            return
        self._keeper.join()
        with contextlib.suppress(Conflict, Unreachable):
            self._contender.release()
        self._watchdog.end()

    def _keep(self) -> None:
        assert self._watchdog is not None
        while not self._over.wait(_RENEW_S):
            try:
                self._contender.renew()
                self._watchdog.tell(self._contender.sent)
            except (Lost, OSError) as error:  # OSError: the watchdog is gone
                log.error("%s", error)  # noqa: TRY400 - a stack trace would say no more
                self._die()
                return
