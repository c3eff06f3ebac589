"""The JVM's lock of a checkpoint: a JVM may outlive a killed Python by a moment, and commit in it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from joinlib.checkpoint.lock import JVM, patiently

PATIENCE_S = 20.0  # for a JVM that a killed driver has left behind


@contextlib.contextmanager
def jvm_lock(spark: SparkSession, checkpoint: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold the checkpoint's lock in this session's JVM.

    Raises:
        NotReady: Another JVM still holds it after `patience_s` seconds.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    file = jvm.java.io.RandomAccessFile(str(checkpoint / JVM), "rw")
    lock = patiently(lambda: file.getChannel().tryLock(), checkpoint, patience_s)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # if the JVM is gone, its lock is too
            lock.release()
            file.close()
