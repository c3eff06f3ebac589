"""One run at a time on a checkpoint: a lock that the kernel gives back when its holder dies, however it dies.

The driver's Python takes it before anything else. The JVM takes a second one, because it can outlive a killed Python by a
moment in which it might still commit: whoever comes next waits for that JVM to be gone.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from joinlib.errors import NotReady


class Lock:
    """Held from construction until `release`, or until the process dies."""

    def __init__(self, checkpoint: Path) -> None:
        checkpoint.mkdir(parents=True, exist_ok=True)
        self.checkpoint = checkpoint
        self._jvm: Any = None
        self._file = os.open(checkpoint / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            holder = os.pread(self._file, 100, 0).decode(errors="replace").strip() or "unknown"
            raise NotReady(
                f"checkpoint {checkpoint} is in use by another run (process {holder}); stop that run first"
            ) from e
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def hold_in_jvm(self, spark: SparkSession, patience_s: float = 20.0) -> None:
        """Waits for a JVM that a killed driver left behind, then takes its place."""
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        file = jvm.java.io.RandomAccessFile(str(self.checkpoint / "lock.jvm"), "rw")
        end = time.monotonic() + patience_s
        while (lock := file.getChannel().tryLock()) is None:
            if time.monotonic() > end:
                raise NotReady(
                    f"checkpoint {self.checkpoint}: the Spark process of an earlier run is still alive; end it first"
                )
            time.sleep(0.2)
        self._jvm = (file, lock)

    def release(self) -> None:
        """Gives the checkpoint to whoever comes next. The JVM's half goes with the JVM, or here if it is still there."""
        if self._jvm is not None:
            try:
                self._jvm[1].release()
                self._jvm[0].close()
            except Exception:  # noqa: BLE001, S110 - the JVM is gone, and its lock with it
                pass
        os.close(self._file)
