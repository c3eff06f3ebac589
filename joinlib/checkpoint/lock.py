"""One run at a time on a checkpoint: a lock that the kernel releases when its holder dies.

The driver's Python takes it before anything else. The JVM takes a second one (`spark.jvm_lock`), because it
can outlive a killed Python by a moment in which it might still commit.
"""

import fcntl
import os
from pathlib import Path

from joinlib.errors import NotReady


class Lock:
    """The checkpoint's lock, held from construction until `release`, or until the process dies."""

    def __init__(self, checkpoint: Path) -> None:
        checkpoint.mkdir(parents=True, exist_ok=True)
        self.checkpoint = checkpoint
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

    def release(self) -> None:
        """Release the checkpoint for the next run."""
        os.close(self._file)
