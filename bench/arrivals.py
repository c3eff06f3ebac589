"""How long after its pod runs does a new executor do its first task of a unit, on a real cluster, where three come at once?

    tests/cluster/e2e .venv/bin/pytest -s -p tests.cluster.conftest bench/arrivals.py

One node has all: the cluster, Prometheus, the driver, and the executors. ARRIVALS (3) times a job on one executor gets
three more. Prints for each of them the seconds between the moment at which its container's first process began (all of the
cluster's processes are this machine's) and that at which the driver's metrics (`streamjoin_executor_units`, asked for every
0.2 s) say that it has units, which is at the end of its first batch; and how long batches took, before and while they came.
"""

import contextlib
import math
import os
import statistics
import time
from pathlib import Path
from urllib.request import urlopen

import psutil

from tests.cluster.jobs import Store, job
from tests.cluster.kube import Kube
from tests.cluster.test_runs import running

NAME, MORE = "arrivals", 3
ARRIVALS = int(os.environ.get("ARRIVALS", "3"))
EXECUTORS = f"app.kubernetes.io/instance={NAME},app.kubernetes.io/component=executor"


def test_arrivals(space: Kube, store: Store) -> None:
    document = job(
        NAME,
        rows=100_000_000,
        rate=5_000,
        output={"noop": {}},
        join={"units": 8},
        executors={"min": 1, "max": 1 + MORE, "cores": 1, "memory": "1280Mi", "instances": 1},
    )
    space.apply(document)
    running(space, NAME, 1)
    url = f"http://{space.get('pod', f'{NAME}-driver-0')['status']['podIP']}:8080/metrics"
    for _ in range(ARRIVALS):
        space.until("one has all units", lambda: len(_units(url)) == 1)
        space.until("the others are gone", lambda: len(space.names("pods", EXECUTORS)) == 1)
        before = _watched(url, 12.0)[1]
        old, asked = set(_units(url)), time.time()
        space.run("scale", "sj", NAME, f"--replicas={1 + MORE}")
        worked, batches = _watched(url, 60.0, 1 + MORE)
        began = _began()
        for executor in sorted(worked.keys() - old):
            print(
                f"executor {executor}: its container ran {began[executor] - asked:.0f} s after it was asked for, first task"
                f" {worked[executor] - began[executor]:.1f} s after that"
            )
        print(
            f"batches: {statistics.median(before):.1f} s before, meanwhile at most"
            f" {', '.join(f'{s:.1f}' for s in sorted(batches, reverse=True)[:3])} s",
            flush=True,
        )
        space.run("scale", "sj", NAME, "--replicas=1")


def _watched(url: str, seconds: float, all_of: int = 0) -> tuple[dict[str, float], list[float]]:
    """When each executor was first seen with units, and how long batches took, until so many have some."""
    worked, batches, count, total = dict[str, float](), list[float](), 0.0, 0.0
    end = time.time() + seconds
    while time.time() < end and not (all_of and len(worked) == all_of):
        found = _metrics(url)
        for name, value in found.items():
            if name.startswith("streamjoin_executor_units") and value > 0:
                worked.setdefault(_label(name), time.time())
        now = found.get("streamjoin_batch_seconds_count", 0), found.get("streamjoin_batch_seconds_sum", 0)
        if count and now[0] > count:
            batches.append((now[1] - total) / (now[0] - count))
        count, total = now
        time.sleep(0.2)
    return worked, batches


def _units(url: str) -> list[str]:
    return [
        _label(name)
        for name, value in _metrics(url).items()
        if name.startswith("streamjoin_executor_units") and value > 0
    ]


def _metrics(url: str) -> dict[str, float]:
    with urlopen(url, timeout=10) as answer:
        lines = [line.rpartition(" ") for line in answer.read().decode().splitlines()]
    return {
        name if "executor=" in name else name.partition("{")[0]: float(value)
        for name, _, value in lines
        if not name.startswith("#")
    }


def _label(name: str) -> str:
    return name.partition('executor="')[2].partition('"')[0]


def _began() -> dict[str, float]:
    """When the containers of executors began, by executor."""
    every = [(_namespace(p), _started(p)) for p in psutil.pids()]
    found = {}
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if NAME in " ".join(command) and "--executor-id" in command:
            own = _namespace(process.pid)
            executor = command[command.index("--executor-id") + 1]
            found[executor] = min(started for namespace, started in every if namespace == own)
    return found


def _namespace(pid: int) -> str:
    """Which processes it sees: those of its container."""
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    return ""


def _started(pid: int) -> float:
    """When a process began: to a hundredth of a second, since the machine started."""
    with contextlib.suppress(OSError):
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    return math.inf
