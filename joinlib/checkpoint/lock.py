"""One run at a time on a checkpoint: a lock that the kernel releases when its holder dies.

The driver's Python takes it before anything else. The JVM takes a second one (`spark.jvm_lock`), because it
can outlive a killed Python by a moment in which it might still commit.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from joinlib.errors import NotReady

JVM = "lock.jvm"
T = TypeVar("T")


class Lock:
    """The checkpoint's lock, held from construction until `release`, or until the process dies."""

    def __init__(self, checkpoint: Path) -> None:
        checkpoint.mkdir(parents=True, exist_ok=True)
        self.checkpoint = checkpoint
        self._file = os.open(checkpoint / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise _in_use(checkpoint, self._file) from e
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the checkpoint for the next run."""
        os.close(self._file)


@contextmanager
def held_off(checkpoint: Path) -> Iterator[None]:
    """Hold runs off inside the block without writing to the checkpoint, which this user may only read.

    Raises:
        NotReady: One is alive.
    """
    with ExitStack() as stack:
        if (file := checkpoint / "lock").exists():
            lock = stack.enter_context(file.open("rb")).fileno()
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError as e:
                raise _in_use(checkpoint, lock) from e
        if (file := checkpoint / JVM).exists():
            jvm = stack.enter_context(file.open("rb")).fileno()
            patiently(lambda: _tried(jvm, fcntl.LOCK_SH), checkpoint, 0)
        yield


def _in_use(checkpoint: Path, lock: int) -> NotReady:
    holder = os.pread(lock, 100, 0).decode(errors="replace").strip() or "unknown"
    return NotReady(
        f"checkpoint {checkpoint} is in use by another run (process {holder}); stop that run first"
    )


def without_jvm(checkpoint: Path, patience_s: float) -> None:
    """Wait until no JVM holds its lock.

    Raises:
        NotReady: One still holds it after `patience_s` seconds.
    """
    with open(checkpoint / JVM, "ab") as file:
        patiently(lambda: _tried(file.fileno()), checkpoint, patience_s)


def patiently(tried: Callable[[], T | None], checkpoint: Path, patience_s: float) -> T:
    """Return the JVM's lock, which `tried` takes; it returns None while an earlier run's JVM has it.

    Raises:
        NotReady: It still has it after `patience_s` seconds.
    """
    end = time.monotonic() + patience_s
    # Not `joinlib.retry`: a lock that is taken is an answer, not an error.
    while (lock := tried()) is None:
        if time.monotonic() >= end:
            raise NotReady(
                f"checkpoint {checkpoint}: the Spark process of an earlier run is still alive; end it first"
            )
        time.sleep(0.2)
    return lock


def _tried(file: int, kind: int = fcntl.LOCK_EX) -> bool | None:
    """Try to take the lock, which is let go when the file is closed. Java's locks are those of POSIX, too."""
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    return True
