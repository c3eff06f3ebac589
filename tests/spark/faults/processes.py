"""What runs in a session of processes (setsid), and its end. Only processes of the given session are ever touched."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["driver", "jvm", "executor", "daemon", "worker", "server", "other"]


@dataclass(frozen=True)
class Process:
    """One process, as /proc shows it."""

    pid: int
    parent: int
    session: int
    state: str
    command: tuple[str, ...]
    name: str  # that of a process of the prefork says what it does


def of_session(session: int) -> list[Process]:
    """Every process of the session, zombies left out: those are only waiting to be read by their parent."""
    return [p for p in _all() if p.session == session and p.state != "Z"]


def of_kind(session: int, kind: Kind) -> list[int]:
    """Process ids. A worker is one that runs tasks, not the one in which the source plans."""
    found = of_session(session)
    tasks = [p for p in found if _runs_tasks(p)]
    daemons = {p.pid for p in tasks if p.parent not in {q.pid for q in tasks}}
    kinds: dict[str, list[int]] = {
        "driver": [p.pid for p in found if p.pid == session],
        "jvm": [p.pid for p in found if _java(p) and "SparkSubmit" in " ".join(p.command)],
        "executor": [
            p.pid for p in found if _java(p) and "CoarseGrainedExecutorBackend" in " ".join(p.command)
        ],
        "daemon": sorted(daemons),
        "worker": [p.pid for p in tasks if p.pid not in daemons],
        "server": [p.pid for p in found if runs_directly(p)],
    }
    return kinds[kind]


def end_workers(session: int) -> int:
    """Kills every worker; how many there were."""
    found = of_kind(session, "worker")
    for pid in found:
        kill(pid)
    return len(found)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def freeze(pid: int) -> None:
    """Stops a process where it is; it keeps all that it holds."""
    kill(pid, signal.SIGSTOP)


def thaw(pid: int) -> None:
    """Lets it go on."""
    kill(pid, signal.SIGCONT)


def gone(session: int, patience_s: float = 20.0) -> list[Process]:
    """Waits until nothing of the session runs; what still does when patience ends."""
    end = time.monotonic() + patience_s
    while (left := of_session(session)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def _runs_tasks(p: Process) -> bool:
    if "joinlib.spark.boot.prefork" in p.command:
        return p.name == "pyspark.worker"
    return p.command[1:] == ("-m", "joinlib.spark.boot.daemon", "pyspark.worker")


def runs_directly(p: Process) -> bool:
    """Whether it runs batches without Spark; where no prefork can run, it is a program of its own."""
    return p.name == "ib.direct.serve" or p.command[1:] == ("-m", "joinlib.direct.serve")


def _java(p: Process) -> bool:
    return bool(p.command) and Path(p.command[0]).name == "java"


def _all() -> Iterator[Process]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                known, _, rest = (entry / "stat").read_text().rpartition(")")
                fields, name = rest.split(), known.partition("(")[2]
                command = tuple((entry / "cmdline").read_text().rstrip("\0").split("\0"))
                yield Process(int(entry.name), int(fields[1]), int(fields[3]), fields[0], command, name)
