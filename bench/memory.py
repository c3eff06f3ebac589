"""How much memory does a process tree hold? Proportional set sizes: a page that several share counts once.

Reading them walks page tables (tens of milliseconds for a large heap), so the pause between two looks is a
hundred times what a look costs: watching takes at most a hundredth of a core. Linux only; elsewhere None.
"""

import os
import threading
import time
from pathlib import Path

PROC = Path("/proc")
PAUSE_SECONDS_MIN = 0.5


def tree(root: int) -> set[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:  # ended meanwhile
            continue
        children.setdefault(parent, []).append(int(entry.parent.name))
    found, todo = set(), [root]
    while todo:
        found.add(process := todo.pop())
        todo += children.get(process, [])
    return found


def held_mb(process: int) -> float:
    """The share of memory of one process; 0 if it has ended."""
    try:
        lines = (PROC / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


class Watch:
    """Looks at a process tree until told to stop; then knows its peak."""

    def __init__(self, root: int) -> None:
        self.peak_mb: float | None = None
        self._root = root
        self._seen: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        if PROC.exists():
            self._thread.start()

    def stop(self, patience_seconds: float = 20.0) -> float | None:
        """The peak, once every process of the tree has gone: the next run has the machine to itself."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        patient_until = time.monotonic() + patience_seconds
        while any(alive(process) for process in self._seen) and time.monotonic() < patient_until:
            time.sleep(0.1)
        return self.peak_mb

    def _look(self) -> None:
        pause = PAUSE_SECONDS_MIN
        while not self._stop.wait(pause):
            began = time.thread_time()
            processes = tree(self._root)
            self._seen |= processes
            self.peak_mb = max(self.peak_mb or 0.0, sum(map(held_mb, processes)))
            pause = max(PAUSE_SECONDS_MIN, 100 * (time.thread_time() - began))


def alive(process: int) -> bool:
    """Whether a process is still there."""
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
