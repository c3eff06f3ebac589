"""What do a job's figures cost, of the CPU of all its processes?

Measured within one run, which does without them by turns.

    python bench/metrics.py [ROUNDS [UNITS]]      writes a table: bench/results/metrics.md (50 rounds: ten minutes)

    without    receipts name files and watermarks only; the driver throws them away; nobody asks
    with       units count, receipts tell, the driver sums up, and /metrics is read every five seconds

A round has some batches of each, in an order of its own. What a batch leaves to be done falls into the next
one, so the first of a turn does not count. Rounds are compared in themselves: how busy the machine is, and
how large the state, changes slowly. Batches differ by more than figures cost, so the difference has a wide
interval; beside it stand the parts, by the clocks of the threads that do them.
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
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import Any

MODES = ("without", "with")
TURN = 4  # batches of one mode
ROUND = TURN * len(MODES)
SCRAPE_S = 5.0
BATCH = 131_072  # rows of both inputs, one slice of each


def spec(units: int) -> str:
    """The job."""
    return f"""
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {{name: figures}}
spec:
  sql: >-
    SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b
    ON a.k = b.k AND a.t BETWEEN b.t - INTERVAL 5 MINUTES AND b.t + INTERVAL 5 MINUTES
  inputs:
    a:
      schema: k BIGINT, v STRING, t TIMESTAMP
      eventTime: {{column: t, delay: 1s}}
      generator: {{keys: 600000}}
    b:
      schema: k BIGINT, v STRING, t TIMESTAMP
      eventTime: {{column: t, delay: 1s}}
      generator: {{keys: 600000, seed: 1}}
  output: {{noop: {{}}}}
  batch: {{maxRows: {BATCH}}}
  join: {{units: {units}}}
  checkpoint: {{path: checkpoint}}
"""


def mode(batch: int) -> str:
    """Of a batch; in each round all modes, in an order of its own."""
    around, at = divmod(batch, ROUND)
    return random.Random(around).sample(MODES, len(MODES))[at // TURN]


def counts(batch: int) -> bool:
    """Is the batch before of the same turn, and everything loaded?"""
    return batch >= 2 * ROUND and batch % TURN > 0


class Cost:
    """CPU seconds of some calls, each in the thread that makes it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def of(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds += time.thread_time() - began

        return timed


# --- the processes of the job -------------------------------------------------------------------------------


def daemon() -> None:
    """Spark's Python daemon, whose workers leave figures out by turns and write down what they cost
    otherwise.
    """
    from joinlib.engine.receipt import Receipt
    from joinlib.engine.unit import UnitTask

    cost, said = Cost(), [-1]
    whole = cost.of(UnitTask.figures)
    Receipt.encode = cost.of(Receipt.encode)  # type: ignore[method-assign]

    def figures(task: UnitTask, join: Any, rows_out: int, files: tuple[str, ...]) -> Receipt:
        if said[0] != task.batch:  # once for each task
            if mode(said[0]) == "with" and counts(said[0]):
                with (Path(os.environ["TMPDIR"]) / "costs").open("a") as costs:
                    costs.write(f"{cost.seconds}\n")
            said[0], cost.seconds = task.batch, 0.0
        if mode(task.batch) == "with":
            return whole(task, join, rows_out, files)
        mark = join.manifest.watermark
        return Receipt(task.unit, task.batch, (), (), (), 0, files, 0, 0, 0, 0, 0, mark, (), 0.0)

    UnitTask.figures = figures  # type: ignore[method-assign]
    runpy.run_module("joinlib.spark.boot.daemon", run_name="__main__", alter_sys=True)


def run(folder: Path, port: int, rounds: int) -> dict[str, Any]:
    """CPU seconds of each batch, from the end of the one before to its own; and of the parts, of all batches
    that count.
    """
    from jobs.driver import driver as module
    from jobs.driver.environment import driver_environment
    from jobs.figures import Figures
    from joinlib.engine import receipt
    from joinlib.spark import job, session
    from joinlib.spec import load

    clocks, batches = [0.0], ROUND * (rounds + 2)
    given, read, sums = session.settings, Cost(), Cost()
    decode, after = receipt.decode, Figures.after
    answers = [0]

    def settings(*arguments: Any) -> dict[str, str]:
        return {**given(*arguments), "spark.python.daemon.module": "bench.metrics"}

    def decoded(text: str) -> Any:
        whole = mode(len(clocks) - 1) == "with" and counts(len(clocks) - 1)
        return (read.of(decode) if whole else decode)(text)

    def sometimes(figures: Figures, report: Any, now: float) -> Figures:
        if mode(report.batch) == "without":
            return figures
        return (sums.of(after) if counts(report.batch) else after)(figures, report, now)

    job.on_one_machine = lambda *_: False  # type: ignore[assignment]  # by Spark, as with executors
    session.settings, receipt.decode, Figures.after = settings, decoded, sometimes  # type: ignore[method-assign]
    file = folder / "spec.yaml"
    driver = module.DriverProcess(file, load(file), driver_environment({"STREAMJOIN_PORT": str(port)}))
    telling, exposition = module.Flow.__init__, module.generate_latest

    def exposed(registry: Any) -> bytes:
        answers[0] += 1
        return exposition(registry)

    def counted(flow: Any, *arguments: Any, **named: Any) -> None:
        telling(flow, *arguments, **named)
        put = flow._reports.put

        def tell(report: Any) -> None:
            clocks.append(cpu())
            (folder / "mode").write_text(mode(report.batch + 1))
            if len(clocks) > batches:
                driver.stopping.set()
            put(report)

        flow._reports = _Queue(flow._reports, tell)

    module.Flow.__init__, module.generate_latest = counted, exposed  # type: ignore[method-assign]
    http = module.HttpServer(module.application(driver.answers()), port)
    http.start()
    answer = threading.Thread(target=_first, args=(port,))
    answer.start()
    answer.join()
    clock = time.pthread_getcpuclockid(http._thread.ident)
    began, answers[0] = time.clock_gettime(clock), 0
    driver.run()
    return {
        "batches": [b - a for a, b in pairwise(clocks[: batches + 1])],
        "tell": sum(map(float, (folder / "costs").read_text().split())),
        "read": read.seconds,
        "sum": sums.seconds,
        "answer": (time.clock_gettime(clock) - began) / max(answers[0], 1),
    }


def _first(port: int) -> None:
    """The first answer loads what the others find."""
    urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20).read()


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


# --- the measurement ----------------------------------------------------------------------------------------


def measured(rounds: int, units: int) -> dict[str, Any]:
    """The job, in a session of its own; whoever asks for figures is none of its processes."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        folder = Path(name)
        (folder / "spec.yaml").write_text(spec(units))
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
        began = time.monotonic()
        job = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
        threading.Thread(target=_scrape, args=(job, folder / "mode", port), daemon=True).start()
        said, _ = job.communicate()
        found: dict[str, Any] = json.loads(said.decode().splitlines()[-1])
        return {**found, "seconds": time.monotonic() - began, "units": units}


def _scrape(job: Any, now: Path, port: int) -> None:
    while job.poll() is None:
        with contextlib.suppress(OSError):
            if now.read_text() == "with":
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()
        time.sleep(SCRAPE_S)


def by_round(batches: Sequence[float]) -> Iterator[dict[str, float]]:
    """The mean batch of each mode, round by round."""
    for start in range(2 * ROUND, len(batches), ROUND):
        those = [n for n in range(start, start + ROUND) if counts(n)]
        yield {m: statistics.mean(batches[n] for n in those if mode(n) == m) for m in MODES}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and between which two values it lies in 95 of 100 cases, whatever their distribution (sign
    test).
    """
    ordered, n = sorted(values), len(values)
    cut, below = 0, 1.0
    while 2 * below / 2**n <= 0.05 and cut < n // 2:
        cut, below = cut + 1, below + comb(n, cut + 1)
    return statistics.median(ordered), ordered[max(cut - 1, 0)], ordered[n - max(cut, 1)]


def table(found: dict[str, Any]) -> str:
    """Of what `measured` says."""
    rounds = [*by_round(found["batches"])]
    more = [100 * (r["with"] / r["without"] - 1) for r in rounds]
    batch = 1000 * statistics.median(r["without"] for r in rounds)
    told = len(rounds) * (TURN - 1)  # batches whose parts were timed
    each = {name: 1000 * found[name] / told for name in ("tell", "read", "sum")}
    wall = found["seconds"] / len(found["batches"])
    each["answer"] = 1000 * found["answer"] * wall / SCRAPE_S
    setting = (
        f"Batches of {BATCH:,} rows, {found['units']} units; {len(rounds)} rounds of {ROUND} batches, {wall:.1f} s"
        f" each on the clock; /metrics is read every {SCRAPE_S:.0f} s."
    )
    lines = [
        setting,
        "Median, and the 95 % interval of the median; CPU of all processes of the job.",
        "",
        "| | |",
        "|---|---|",
        *(f"| a batch, {m} figures | {_row([1000 * r[m] for r in rounds], 'ms')} |" for m in MODES),
        f"| with, more than without | {_row(more, '%')} |",
        "",
        "By the clocks of the threads that do it:",
        "",
        "| | ms a batch | of a batch |",
        "|---|---|---|",
        *(
            f"| {what} | {each[name]:.2f} | {100 * each[name] / batch:.2f} % |"
            for name, what in _PARTS.items()
        ),
        f"| together | {sum(each.values()):.2f} | {100 * sum(each.values()) / batch:.2f} % |",
        "",
        f"One answer of /metrics, HTTP and all: {1000 * found['answer']:.1f} ms.",
    ]
    return "\n".join(lines)


_PARTS = {
    "tell": "units: count, and write receipts",
    "read": "driver: read receipts",
    "sum": "driver: sum up",
    "answer": "driver: answer /metrics",
}


def _row(values: Sequence[float], unit: str) -> str:
    median, low, high = interval(values)
    return f"{median:.2f} ({low:.2f} to {high:.2f}) {unit}"


def main(rounds: int, units: int) -> None:
    text = table(measured(rounds, units))
    (Path(__file__).parent / "results" / "metrics.md").write_text(f"# What figures cost\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        outcome = run(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        print(json.dumps(outcome), flush=True)
        os._exit(0)
    if sys.argv[1:2] and not sys.argv[1].isdigit():  # started by Spark, which names the kind of its workers
        daemon()
    else:
        given = [int(number) for number in sys.argv[1:]]
        main(*given, *(50, 8)[len(given) :])
