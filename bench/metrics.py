"""What do a job's figures cost, of the CPU of all its processes? Measured within one run, which does without them by turns.

    python bench/metrics.py [ROUNDS]      writes a table: bench/results/metrics.md

    nothing    receipts name files and watermarks only; the driver throws them away; nobody asks
    figures    units count, receipts tell, the driver sums up: what every job does
    scraped    and /metrics is read every second (Prometheus would read every 15)

A round has some batches of each, in an order of its own. What a batch leaves to be done falls into the next one, so the first
of a turn does not count. Rounds are compared in themselves: how busy the machine is, and how large the state, changes slowly.
"""

import contextlib
import json
import os
import random
import runpy
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import Any

MODES = ("nothing", "figures", "scraped")
TURN = 4  # batches of one mode
WARM = TURN * len(MODES)  # batches that do not count: what is loaded first
BATCH, UNITS = 200_000, 32  # rows of both inputs
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {{name: figures}}
spec:
  sql: SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b ON a.k = b.k
  inputs:
    a: {{schema: "k BIGINT, v STRING", generator: {{rows: {rows}, keys: 20000000}}}}
    b: {{schema: "k BIGINT, v STRING", generator: {{rows: {rows}, keys: 20000000}}}}
  output: {{noop: {{}}}}
  batch: {{maxRows: {batch}}}
  join: {{units: {units}}}
  checkpoint: {{path: checkpoint}}
"""


def mode(batch: int) -> str:
    """Of a batch; in each round all modes, in an order of its own."""
    around, at = divmod(batch, WARM)
    return random.Random(around).sample(MODES, len(MODES))[at // TURN]


def counts(batch: int) -> bool:
    """Is the batch before of the same turn?"""
    return batch >= WARM and batch % TURN > 0


# --- the processes of the job ----------------------------------------------------------------------------------------


def daemon() -> None:
    """Spark's Python daemon, whose workers leave figures out by turns."""
    from joinlib.spark.receipt import Receipt
    from joinlib.spark.unit import UnitTask

    whole = UnitTask._figures

    def figures(task: UnitTask, join: Any, held: Any, rows_out: int, files: tuple[str, ...]) -> Receipt:
        if mode(task.batch) != "nothing":
            return whole(task, join, held, rows_out, files)
        return Receipt(
            task.unit, task.batch, (), (), (), 0, files, 0, 0, 0, 0, 0, join.manifest.watermark, (), 0.0
        )

    UnitTask._figures = figures  # type: ignore[method-assign]
    runpy.run_module("joinlib.spark.daemon", run_name="__main__", alter_sys=True)


def run(folder: Path, port: int, rounds: int) -> list[float]:
    """CPU seconds of each batch: from the end of the batch before to its own."""
    from jobs import driver as module
    from jobs.figures import Figures
    from jobs.surroundings import surroundings
    from joinlib.spark import session
    from joinlib.spec import load

    clocks, batches = [0.0], WARM * (rounds + 1)
    given, after = session.settings, Figures.after

    def settings(*arguments: Any) -> dict[str, str]:
        return {**given(*arguments), "spark.python.daemon.module": "bench.metrics"}

    def sometimes(figures: Figures, report: Any, now: float) -> Figures:
        return figures if mode(report.batch) == "nothing" else after(figures, report, now)

    session.settings, Figures.after = settings, sometimes  # type: ignore[method-assign]
    file = folder / "spec.yaml"
    driver = module.Driver(file, load(file), surroundings({"STREAMJOIN_PORT": str(port)}))
    telling = module.Flow.__init__

    def counted(flow: Any, *arguments: Any, **named: Any) -> None:
        telling(flow, *arguments, **named)
        put = flow._reports.put

        def tell(report: Any) -> None:
            clocks.append(cpu())
            (folder / "mode").write_text(mode(report.batch + 1))
            if report.batch + 1 == batches:
                driver.stopping.set()
            put(report)

        flow._reports = _Queue(flow._reports, tell)

    module.Flow.__init__ = counted  # type: ignore[method-assign]
    http = module.Server(module.application(driver.answers()), port)
    http.start()
    driver.run()
    return [b - a for a, b in pairwise(clocks[: batches + 1])]


class _Queue:
    """A queue, but for how something is put into it."""

    def __init__(self, queue: Any, put: Any) -> None:
        self.get, self.get_nowait, self.put = queue.get, queue.get_nowait, put


def cpu() -> float:
    """Seconds of all processes of this session, to the nanosecond."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(pid := int(entry.name)) == os.getsid(0):
                total += time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) makes of it
    return total


# --- the measurement -------------------------------------------------------------------------------------------------


def measured(rounds: int) -> list[float]:
    """The job, in a session of its own; whoever asks for figures is none of its processes."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        folder = Path(name)
        rows = BATCH // 2 * WARM * (rounds + 2)
        (folder / "spec.yaml").write_text(SPEC.format(rows=rows, batch=BATCH, units=UNITS))
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        root = str(Path(__file__).parents[1])
        environment = {
            **os.environ,
            "STREAMJOIN_LOCAL_DIR": name,
            "TMPDIR": name,
            "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, __file__, "run", name, str(port), str(rounds)]
        job = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
        threading.Thread(target=_scrape, args=(job, folder / "mode", port), daemon=True).start()
        said, _ = job.communicate()
        found: list[float] = json.loads(said.decode().splitlines()[-1])
        return found


def _scrape(job: Any, now: Path, port: int) -> None:
    while job.poll() is None:
        with contextlib.suppress(OSError):
            if now.read_text() == "scraped":
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()
        time.sleep(1.0)


def by_round(batches: Sequence[float]) -> Iterator[dict[str, float]]:
    """The median batch of each mode, round by round."""
    for start in range(WARM, len(batches), WARM):
        those = [n for n in range(start, start + WARM) if counts(n)]
        yield {m: statistics.median(batches[n] for n in those if mode(n) == m) for m in MODES}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and between which two values it lies in 95 of 100 cases, whatever their distribution (sign test)."""
    ordered, n = sorted(values), len(values)
    cut, below = 0, 1.0
    while 2 * below / 2**n <= 0.05 and cut < n // 2:
        cut, below = cut + 1, below + comb(n, cut + 1)
    return statistics.median(ordered), ordered[max(cut - 1, 0)], ordered[n - max(cut, 1)]


def table(batches: Sequence[float]) -> str:
    """Of the CPU seconds of all batches."""
    rounds = [*by_round(batches)]
    figures = [100 * (r["figures"] / r["nothing"] - 1) for r in rounds]
    scraped = [100 * (r["scraped"] / r["nothing"] - 1) for r in rounds]
    seldom = [f + (s - f) / 15 for f, s in zip(figures, scraped, strict=True)]
    lines = [
        f"Batches of {BATCH:,} rows, {UNITS} units; {len(rounds)} rounds of {WARM} batches.",
        "Median, and the 95 % interval of the median; processes of the job only.",
        "",
        "| | |",
        "|---|---|",
        *(f"| CPU of a batch, {m} | {_row([1000 * r[m] for r in rounds], 'ms')} |" for m in MODES),
        f"| figures, more than nothing | {_row(figures, '%')} |",
        f"| and scraped every second | {_row(scraped, '%')} |",
        f"| and scraped every 15 seconds | {_row(seldom, '%')} |",
    ]
    return "\n".join(lines)


def _row(values: Sequence[float], unit: str) -> str:
    median, low, high = interval(values)
    return f"{median:.2f} ({low:.2f} to {high:.2f}) {unit}"


def main(rounds: int) -> None:
    text = table(measured(rounds))
    (Path(__file__).parent / "results" / "metrics.md").write_text(f"# What figures cost\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        found = run(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        print(json.dumps(found), flush=True)
        os._exit(0)
    if sys.argv[1:2] and not sys.argv[1].isdigit():  # started by Spark, which names the kind of its workers
        daemon()
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 15)
