"""The JVM's lock of a checkpoint: a JVM may outlive a killed Python by a moment, and commit in it."""

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from joinlib.errors import NotReady

_FILE = "lock.jvm"
_PATIENCE_S = 20.0  # for a JVM that a killed driver has left behind


@contextlib.contextmanager
def jvm_lock(spark: SparkSession, checkpoint: Path, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Hold the checkpoint's lock in this session's JVM.

    Raises:
        NotReady: Another JVM still holds it after `patience_s` seconds.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    file = jvm.java.io.RandomAccessFile(str(checkpoint / _FILE), "rw")
    lock = _until(lambda: file.getChannel().tryLock(), checkpoint, patience_s)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # if the JVM is gone, its lock is too
            lock.release()
            file.close()


def wait_for_others(checkpoint: Path, patience_s: float = _PATIENCE_S) -> None:
    """Wait until no JVM holds the checkpoint's lock.

    Raises:
        NotReady: One still holds it after `patience_s` seconds.
    """
    with open(checkpoint / _FILE, "ab") as file:
        _until(lambda: _tried(file.fileno()), checkpoint, patience_s)


def _tried(file: int) -> bool | None:
    """Try to take the lock, which is let go when the file is closed. Java's locks are those of POSIX, too."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    return True


def _until(tried: Callable[[], Any], checkpoint: Path, patience_s: float) -> Any:
    """Return the lock that `tried` takes; it returns None while another has it."""
    end = time.monotonic() + patience_s
    # Not `joinlib.retry`: a lock that is taken is an answer, not an error.
    while (lock := tried()) is None:
        if time.monotonic() > end:
            raise NotReady(
                f"checkpoint {checkpoint}: the Spark process of an earlier run is still alive; end it first"
            )
        time.sleep(0.2)
    return lock
