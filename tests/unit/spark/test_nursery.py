"""Processes that are forked where Spark believes to start Python."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

OWNER = "from joinlib.spark import nursery; print(nursery.begin(), flush=True); input()"
SLEEP = [
    "-m",
    "timeit",
    "-n",
    "1",
    "-r",
    "1",
    "-s",
    "print('up', flush=True)",
    "import time; time.sleep(300)",
]


@dataclass(frozen=True)
class Owner:
    """A process with a nursery; `python` is what Spark would start."""

    process: subprocess.Popen[str]
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "STREAMJOIN_NURSERY": str(self.python.parent / "nursery")}

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def owner() -> Iterator[Owner]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    owner = Owner(process, Path(process.stdout.readline().strip()))
    until((owner.python.parent / "nursery").exists)
    yield owner
    owner.end()
    until(lambda: not owner.python.parent.exists())


def test_a_forked_process_is_as_one_that_was_started(owner: Owner, tmp_path: Path) -> None:
    """Input, output, folder, variables, arguments and exit code are the asker's; and it was forked."""
    (tmp_path / "told.py").write_text(
        "import os, sys\n"
        "print(os.getcwd(), os.environ['NAMED'], sys.argv[1:], sys.stdin.read(), 'joinlib.warm' in sys.modules)\n"
        "sys.exit(7)\n"
    )
    environment = {**owner.environment, "NAMED": "so", "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [owner.python, "-m", "told", "one"],
        input="said",
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, f"{tmp_path} so ['one'] said True\n", "")


def test_a_mistake_is_told(owner: Owner) -> None:
    """As Python does: on its standard error, and by its exit code."""
    done = subprocess.run(
        [owner.python, "-m", "no_such"], env=owner.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "no_such" in done.stderr


def test_it_ends_with_who_asked_for_it(owner: Owner) -> None:
    """However that one ends."""
    asker = subprocess.Popen([owner.python, *SLEEP], env=owner.environment, stdout=subprocess.PIPE, text=True)
    assert asker.stdout is not None
    asker.stdout.readline()
    (forked,) = children(nursery_of(owner))
    asker.send_signal(signal.SIGKILL)
    asker.wait()
    asker.stdout.close()
    until(lambda: not Path(f"/proc/{forked}").exists())


def test_who_ends_before_it_has_asked_does_no_harm(owner: Owner) -> None:
    """The nursery goes on."""
    for said in (b"", b"1234", (10).to_bytes(8, "big") + b"{"):
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(owner.environment["STREAMJOIN_NURSERY"])
            asker.sendall(said)
    done = subprocess.run(
        [owner.python, "-m", "calendar", "2026"], env=owner.environment, capture_output=True, check=True
    )
    assert b"2026" in done.stdout
    assert nursery_of(owner)


def test_without_a_nursery_it_is_python(owner: Owner) -> None:
    """Nobody hears at the address; or there is nothing to fork for."""
    gone = {**owner.environment, "STREAMJOIN_NURSERY": "/nowhere/nursery"}
    for environment, command in (
        (gone, ["-m", "calendar", "2026"]),
        (owner.environment, ["-c", "print(2026)"]),
    ):
        done = subprocess.run(
            [owner.python, *command], env=environment, capture_output=True, text=True, check=True
        )
        assert "2026" in done.stdout


def nursery_of(owner: Owner) -> int:
    (found,) = children(owner.process.pid)
    return found


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def until(true: Callable[[], bool], patience_s: float = 60.0) -> None:
    """Waits until it is."""
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
