"""What do many jobs cost the operator?

CPU, memory and requests of its process, before an API server that is played.

PYTHONPATH=.:operator python bench/many_jobs.py 50 300 1000 [--seconds 120] [--tree ANOTHER_CHECKOUT]

All jobs run: each has a driver that answers, with figures that change all the time (all of them one server at
127.0.0.77:8080). A look is measured by the CPU of the whole process over the looks of a time in which all is
as it should be: watches, answers of drivers and what is served are in it.
"""

import argparse
import asyncio
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from aiohttp import web
from joinop.resources import CLAIM

from joinlib.deploy import POD
from tests.deploy.operator.apiserver import ApiServer
from tests.deploy.operator.objects import driver_pod, running, stream_join
from tests.ports import free_port

ROOT, DRIVERS = Path(__file__).parents[1], "127.0.0.77"
_PATIENCE_S = 1800  # until all jobs run: ten objects are made for each
Object = dict[str, Any]


def job(number: int) -> Object:
    """A job of its own, with a claim of its own."""
    claim = [{"mountPath": "/data", "claim": f"claim-{number}"}]
    return stream_join(f"job-{number}", checkpoint__path=f"/data/checkpoints/{number}", volumes=claim)


def pod(given: Object) -> Object:
    found = driver_pod(given, podIP=DRIVERS)
    return {**found, "metadata": {**found["metadata"], "uid": f"pod-{given['metadata']['name']}"}}


def claim(number: int) -> Object:
    return {"metadata": {"name": f"claim-{number}", "namespace": "shop"}}


@contextmanager
def drivers() -> Iterator[None]:
    """All of them."""
    batch, loop, over = itertools.count(), asyncio.new_event_loop(), asyncio.Event()
    ready = threading.Event()

    async def status(_: web.Request) -> web.Response:
        return web.json_response(running(batch=next(batch)).body)

    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/v1/status", status)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, DRIVERS, 8080).start()
        ready.set()
        await over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(10), f"{DRIVERS}:8080 is taken"
    try:
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)


@contextmanager
def operator(server: ApiServer, tree: Path, port: int) -> Iterator[psutil.Process]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{tree}:{tree / 'operator'}",
            "KUBECONFIG": str(server.config(Path(folder) / "config", "operator")),
            "JOINOP_LEASE": "system/operator",
            "JOINOP_PORT": str(port),
        }
        process = subprocess.Popen([sys.executable, "-m", "joinop"], cwd=tree, env=environment)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()
            process.wait()


def figures(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def looks(port: int) -> float:
    return figures(port)["streamjoin_operator_reconcile_seconds_count"]


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def settled(server: ApiServer, jobs: int, end: float) -> bool:
    """Whether all run in time."""
    while time.monotonic() < end:
        things = [found for (plural, _, _), found in server.objects.copy().items() if plural == "streamjoins"]
        if sum((each.get("status") or {}).get("phase") == "Running" for each in things) == jobs:
            return True
        time.sleep(0.5)
    return False


def measured(jobs: int, seconds: float, tree: Path) -> str:
    """A row of the table."""
    server, port = ApiServer(), free_port()
    with server.running(), drivers():
        given = [job(number) for number in range(jobs)]
        server.add(*given)
        server.add(*map(claim, range(jobs)), kind=CLAIM)
        server.add(*map(pod, given), kind=POD)
        with operator(server, tree, port) as process:
            began = time.monotonic()
            if not settled(server, jobs, began + _PATIENCE_S):
                return f"| {jobs} | not within {_PATIENCE_S} s | | | | | |"
            start_s, start_cpu = time.monotonic() - began, cpu(process)
            time.sleep(40)  # the first looks after a start are over
            asked, used, done, since = len(server.asked), cpu(process), looks(port), time.monotonic()
            time.sleep(seconds)
            used, done, took = cpu(process) - used, looks(port) - done, time.monotonic() - since
            minute = Counter(
                "leases" if a.what == "leases" else "lists" if "limit" in a.query else a.method
                for a in server.asked[asked:]
            )
            memory = process.memory_info().rss
    requests = ", ".join(f"{60 * n / took:.0f} {what}" for what, n in sorted(minute.items()))
    return (
        f"| {jobs} | {start_s:.0f} s, {start_cpu:.0f} s CPU | {1000 * used / max(done, 1):.1f} ms "
        f"| {60 * done / took:.0f} | {100 * used / took:.0f} % | {memory / 1e6:.0f} MB | {requests} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What do many jobs cost the operator?")
    parser.add_argument("jobs", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--tree", type=Path, default=ROOT)
    given = parser.parse_args()
    print("| jobs | until all run | CPU a look | looks a minute | of a core | memory | requests a minute |")
    print("|---|---|---|---|---|---|---|")
    for jobs in given.jobs:
        print(measured(jobs, given.seconds, given.tree.resolve()), flush=True)


if __name__ == "__main__":
    main()
