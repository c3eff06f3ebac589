"""The lock of a checkpoint that a JVM holds, as it is seen from Python."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from joinlib.checkpoint.lock import without_jvm
from joinlib.errors import NotReady

HOLDS = """
import fcntl, sys, time
file = open(sys.argv[1], "ab")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize(("seconds", "waits"), [(0.5, True), (60.0, False)])
def test_another_process_holds_it(tmp_path: Path, seconds: float, waits: bool) -> None:
    """It is waited for as long as it dies soon. Java's lock of a whole file is such a lock (`tests/spark/faults/test_takeover.py`)."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "lock.jvm"), str(seconds)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        if waits:
            without_jvm(tmp_path, 20)
        else:
            with pytest.raises(NotReady, match="the Spark process of an earlier run is still alive"):
                without_jvm(tmp_path, 0.3)
        holder.kill()


def test_nobody_holds_it(tmp_path: Path) -> None:
    """Nor does the caller afterwards: its own JVM takes it."""
    without_jvm(tmp_path, 0)
    with open(tmp_path / "lock.jvm", "ab") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
