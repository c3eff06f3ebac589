"""A process that kills its process group when the driver has not renewed its Lease for too long.

    driver ── 8 bytes per renewal: when it was sent ──► watchdog ── too old ──► SIGKILL to the whole group

It is its own process because a driver that hangs, or was frozen, cannot be trusted to check the clock; and it
must also end Spark's JVM, which commits. The clock is that of `lease`, the same for all processes of a
machine. When the driver ends, the pipe closes and the watchdog ends too.
"""

import os
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Callable

from joinlib.lease import clock

_MOMENT = struct.Struct("d")
_LOOK_S = 1.0  # short, because a wait does not advance while the machine sleeps


class Watchdog:
    """The driver's end of the pipe."""

    def __init__(self, late_s: float) -> None:
        command = [sys.executable, "-m", "jobs.driver.watchdog", str(late_s)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0)

    def tell(self, sent: float) -> None:
        """Report the time at which a renewal was sent that has been answered."""
        assert self._process.stdin is not None
        self._process.stdin.write(_MOMENT.pack(sent))

    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def watch(source: int, late_s: float, clock: Callable[[], float] = clock) -> bool:
    """Read times from the pipe until the latest is too old; return True then.

    Returns False if the driver has closed its end.
    """
    last = clock()
    while (left := last + late_s - clock()) > 0:
        if select.select([source], [], [], min(left, _LOOK_S))[0]:
            beats = os.read(source, 4096)
            if not beats:
                return False
            last = max(last, _MOMENT.unpack(beats[-_MOMENT.size :])[0])
    return True


def main() -> None:
    for ignored in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)  # it guards also while the driver stops
    if watch(sys.stdin.fileno(), float(sys.argv[1])):
        print(
            "watchdog: the lease was not renewed in time; ending all processes", file=sys.stderr, flush=True
        )
        os.kill(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
