"""The watchdog as a real process group."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.patience import HUNG_S

_DRIVER = """
import subprocess, sys
from joinlib.lease import clock
from jobs.driver.watchdog import Watchdog
dog = Watchdog(float(sys.argv[1]))
child = subprocess.Popen(["sleep", "60"])
dog.tell(clock())
print(child.pid, flush=True)
for command in sys.stdin:
    if command == "tell\\n":
        dog.tell(clock())
    if command == "end\\n":
        dog.end()
        child.kill()
        child.wait()
        break
"""


@contextmanager
def driver(late_s: float) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(late_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def say(process: subprocess.Popen[str], command: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{command}\n")
    process.stdin.flush()


@pytest.mark.slow
def test_ends_the_whole_group_when_it_hears_nothing() -> None:
    """The driver and all that it has started; not before the time is over."""
    with driver(2.0) as (process, child):
        for _ in range(6):
            time.sleep(0.4)
            say(process, "tell")
        assert process.poll() is None
        assert process.wait(HUNG_S) == -signal.SIGKILL
        assert _gone(child)


@pytest.mark.slow
def test_a_frozen_driver_is_ended_while_it_is_frozen() -> None:
    """The watchdog does not depend on it."""
    with driver(0.7) as (process, child):
        process.send_signal(signal.SIGSTOP)
        assert process.wait(HUNG_S) == -signal.SIGKILL
        assert _gone(child)


def test_goes_when_it_is_told() -> None:
    """A driver that stops in order is not killed."""
    with driver(5.0) as (process, _):
        say(process, "end")
        assert process.wait(HUNG_S) == 0


def _gone(pid: int) -> bool:
    """Ended, or a zombie that nobody has taken note of."""
    for _ in range(50):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
