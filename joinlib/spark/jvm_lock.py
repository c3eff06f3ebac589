"""The JVM's lock of a checkpoint: a JVM may outlive a killed Python by a moment, and commit in it."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from joinlib.errors import NotReady


@contextlib.contextmanager
def jvm_lock(spark: SparkSession, checkpoint: Path, patience_s: float = 20.0) -> Iterator[None]:
    """Hold the checkpoint's lock in this session's JVM.

    Waits up to `patience_s` seconds for a JVM that a killed driver has left behind.

    Raises:
        NotReady: The other JVM is still alive after that time.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    file = jvm.java.io.RandomAccessFile(str(checkpoint / "lock.jvm"), "rw")
    end = (
        time.monotonic() + patience_s
    )  # not `joinlib.retry`: a lock that is taken is an answer, not an error
    while (lock := file.getChannel().tryLock()) is None:
        if time.monotonic() > end:
            raise NotReady(
                f"checkpoint {checkpoint}: the Spark process of an earlier run is still alive; end it first"
            )
        time.sleep(0.2)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # if the JVM is gone, its lock is too
            lock.release()
            file.close()
