"""How much memory does a command take, where it may have no more than so much? In a cgroup of its own.

The cap holds for everything, page cache included: what a large machine's cache would hide, shows. **Held** is
anonymous and shared memory, which cannot be read again from a file; the JVM is part of it. Linux, as root:
version 1 or 2 of cgroups.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOTS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
PAUSE_SECONDS = 0.25
MB = 1_000_000


@dataclass
class Cap:
    """A cgroup, and what was seen of it."""

    folder: Path
    held: list[tuple[float, float]] = field(default_factory=list)  # seconds since the epoch, MB

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.held), default=0.0)

    def around(self, command: list[str]) -> list[str]:
        """The command, run within."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.folder / "cgroup.procs"), *command]

    def look(self) -> None:
        lines = (self.folder / "memory.stat").read_text().splitlines()
        stat = {name: int(value) for name, value in map(str.split, lines)}
        self.held.append((time.time(), (stat.get("anon", stat.get("rss", 0)) + stat["shmem"]) / MB))

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            if (file := self.folder / name).exists():
                said = dict(line.split() for line in file.read_text().splitlines())
                return int(said.get("oom_kill", 0))
        return 0


@contextlib.contextmanager
def capped(limit_mb: int) -> Iterator[Cap]:
    """The cgroup; it ends with the block, and with it whatever still runs in it."""
    root = next(root for root in ROOTS if (root / "cgroup.procs").exists())
    cap = Cap(root / f"streamjoin-bench-{os.getpid()}-{time.monotonic_ns()}")
    cap.folder.mkdir()
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(cap, done), daemon=True)
    try:
        name = "memory.max" if (cap.folder / "memory.max").exists() else "memory.limit_in_bytes"
        (cap.folder / name).write_text(str(limit_mb * MB))
        watch.start()
        yield cap
    finally:
        done.set()
        if watch.is_alive():
            watch.join()
        _remove(cap.folder)


def _watch(cap: Cap, done: threading.Event) -> None:
    while not done.wait(PAUSE_SECONDS):
        cap.look()


def _remove(folder: Path, patience_seconds: float = 20.0) -> None:
    end = time.monotonic() + patience_seconds
    while True:
        for process in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), 9)
        try:
            folder.rmdir()
        except OSError:  # somebody is still ending
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return
