"""Processes that are forked where Spark believes to start Python."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.patience import until

OWNER = "from joinlib.spark.boot import prefork; print(prefork.begin(), flush=True); input()"
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
    """A process with a prefork; `python` is what Spark would start."""

    process: subprocess.Popen[str]
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "STREAMJOIN_PREFORK": str(self.python.parent / "prefork")}

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def owner() -> Iterator[Owner]:
    with owning() as owner:
        yield owner


@contextmanager
def owning() -> Iterator[Owner]:
    """One that leads a process group. Nothing of it may stay."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    owner = Owner(process, Path(process.stdout.readline().strip()))
    until((owner.python.parent / "prefork").exists)
    try:
        yield owner
    finally:
        owner.end()
    until(lambda: not owner.python.parent.exists())


@pytest.mark.slow
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
    (forked,) = children(prefork_of(owner))
    asker.send_signal(signal.SIGKILL)
    asker.wait()
    asker.stdout.close()
    until(lambda: not Path(f"/proc/{forked}").exists())


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def hang_up(process: int) -> None:
    """As a terminal and a service manager do: all of the group get it."""
    os.killpg(process, signal.SIGHUP)
    os.killpg(process, signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("end", [kill, hang_up])
def test_all_end_with_the_owner(end: Callable[[int], None]) -> None:
    """However that one ends: no process stays, and no folder (see `owning`)."""
    with owning() as owner:
        command = [owner.python, *SLEEP]
        with subprocess.Popen(command, env=owner.environment, stdout=subprocess.PIPE, text=True) as asker:
            assert asker.stdout is not None
            asker.stdout.readline()
            (forked,) = children(prefork_of(owner))
            end(owner.process.pid)
            until(lambda: not Path(f"/proc/{forked}").exists())
            assert asker.wait() != 0


@pytest.mark.parametrize(
    ("order", "complaint"),
    [
        ({"command": ["calendar"], "environment": {}, "folder": "/nowhere"}, "FileNotFoundError"),
        ({"something": "else"}, "TypeError"),
    ],
)
def test_what_cannot_become_a_process_says_why(
    owner: Owner, order: dict[str, object], complaint: str
) -> None:
    """To the asker; the prefork goes on."""
    text = json.dumps(order).encode()
    heard, told = os.pipe()
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(owner.environment["STREAMJOIN_PREFORK"])
        socket.send_fds(asker, [len(text).to_bytes(8, "big")], [told, told, told])
        os.close(told)
        asker.sendall(text)
        with asker.makefile("rb") as answers, open(heard) as complaints:
            assert (answers.read(), complaint in complaints.read()) == (b"f\x01", True)
    assert owner.python.exists()


@pytest.mark.parametrize("room", [3, 4])
def test_where_it_cannot_fork_one_is_started(owner: Owner, tmp_path: Path, room: int) -> None:
    """There is no room for the three files that it is handed, or for the process itself; later there is."""
    (tmp_path / "told.py").write_text("import sys; print('joinlib.warm' in sys.modules)\n")
    environment = {**owner.environment, "PYTHONPATH": str(tmp_path)}
    prefork = prefork_of(owner)
    taken = at_rest(prefork)
    free = [number for number in range(1000) if number not in taken]
    before = resource.prlimit(prefork, resource.RLIMIT_NOFILE)
    told = []
    for limit in ((free[room], before[1]), before):
        resource.prlimit(prefork, resource.RLIMIT_NOFILE, limit)
        done = subprocess.run(
            [owner.python, "-m", "told"], env=environment, capture_output=True, text=True, check=True
        )
        told.append(done.stdout.split()[-1])
    assert told == ["False", "True"]


def test_who_ends_before_it_has_asked_does_no_harm(owner: Owner) -> None:
    """The prefork goes on, and keeps no file open."""
    prefork = prefork_of(owner)
    until(lambda: not children(prefork))
    before = len(files(prefork))
    for said in (b"1234", (10).to_bytes(8, "big"), (10).to_bytes(8, "big") + b"{"):
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(owner.environment["STREAMJOIN_PREFORK"])
            socket.send_fds(asker, [said], [0, 0, 0])
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(owner.environment["STREAMJOIN_PREFORK"])
    done = subprocess.run(
        [owner.python, "-m", "calendar", "2026"], env=owner.environment, capture_output=True, check=True
    )
    assert b"2026" in done.stdout
    until(lambda: len(files(prefork)) <= before)


def test_without_a_nursery_it_is_python(owner: Owner) -> None:
    """Nobody hears at the address; or there is nothing to fork for."""
    gone = {**owner.environment, "STREAMJOIN_PREFORK": "/nowhere/prefork"}
    for environment, command in (
        (gone, ["-m", "calendar", "2026"]),
        (owner.environment, ["-c", "print(2026)"]),
    ):
        done = subprocess.run(
            [owner.python, *command], env=environment, capture_output=True, text=True, check=True
        )
        assert "2026" in done.stdout


def prefork_of(owner: Owner) -> int:
    (found,) = children(owner.process.pid)
    return found


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def files(process: int) -> set[int]:
    return {int(number) for number in os.listdir(f"/proc/{process}/fd")}


def at_rest(prefork: int) -> set[int]:
    """Its files once it serves nobody: those of whoever ended last are closed a moment after its children are gone."""
    seen: list[set[int]] = []

    def same() -> bool:
        seen.append(files(prefork))
        return not children(prefork) and len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]

    until(same)
    return seen[-1]
