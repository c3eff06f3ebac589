"""What do a driver's figures cost? The same job with them and a scraper, and without either; CPU of all its processes.

    python bench/metrics.py [PAIRS]      writes a table: bench/results/metrics.md

With     the driver: receipts become figures, HTTP, /metrics read every second (Prometheus would read every 15)
Without  a flow alone: receipts are thrown away, nobody listens

Counted from the end of the first batch: what is loaded at the start, such as the HTTP server, is no cost of a batch.
Besides, of the runs with figures: CPU of what only they need, by the clocks of its threads. Runs differ by some percent
whatever one does, so this is the sharper number.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS, BATCH, UNITS = 4_000_000, 200_000, 32  # rows of both inputs; of a batch
SPEC = f"""
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {{name: figures}}
spec:
  sql: SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b ON a.k = b.k
  inputs:
    a: {{schema: "k BIGINT, v STRING", generator: {{rows: {ROWS // 2}, keys: 1000000}}}}
    b: {{schema: "k BIGINT, v STRING", generator: {{rows: {ROWS // 2}, keys: 1000000}}}}
  output: {{noop: {{}}}}
  batch: {{maxRows: {BATCH}}}
  join: {{units: {UNITS}}}
  checkpoint: {{path: checkpoint}}
"""


class Cost:
    """CPU seconds of some calls, each in the thread that makes it."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def of(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds, self.calls = self.seconds + time.thread_time() - began, self.calls + 1

        return timed


def with_figures(file: Path) -> dict[str, float]:
    from jobs import driver as module
    from jobs.figures import Figures
    from jobs.surroundings import surroundings
    from joinlib.spec import load

    after, scrape = Cost(), Cost()
    Figures.after = after.of(Figures.after)  # type: ignore[method-assign]
    module.generate_latest = scrape.of(module.generate_latest)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = module.Driver(file, load(file), surroundings({"STREAMJOIN_PORT": str(port)}))
    threading.Thread(target=_scraper, args=(port, driver.stopping), daemon=True).start()

    before = [0.0, 0.0]  # CPU and batches, when the first batch was done

    def stop() -> None:
        while (figures := driver.moment.figures) is None or sum(figures.rows_in) < ROWS:
            if figures is not None and figures.batches and not before[0]:
                before[:] = _cpu(), figures.batches
            time.sleep(0.1)
        driver.stopping.set()

    threading.Thread(target=stop, daemon=True).start()
    http = module.Server(module.application(driver.answers()), port)
    http.start()
    driver.run()
    assert driver.moment.figures is not None
    return {
        "batches": driver.moment.figures.batches - before[1],
        "before": before[0],
        "figures": after.seconds,
        "exposition": scrape.seconds,
        "scrapes": scrape.calls,
    }


def _scraper(port: int, over: threading.Event) -> None:
    while not over.wait(1.0):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()
        except OSError:
            continue


def without(file: Path) -> dict[str, float]:
    from jobs.flow import Flow
    from joinlib.spec import load

    flow, rows, batches = Flow(load(file), until_done=False, cores=None, conf={}), 0, 0
    before = 0.0, 0
    flow.start()
    while rows < ROWS:
        for report in flow.reports(0.5):
            rows, batches = rows + report.rows_in, batches + 1
        if batches and not before[1]:
            before = _cpu(), batches
        assert flow.is_alive(), flow.error
    flow.stop()
    flow.join()
    return {"batches": batches - before[1], "before": before[0]}


def measured(mode: str) -> dict[str, float]:
    """One run in processes of its own; CPU seconds of all of them, those that have ended included."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "spec.yaml").write_text(SPEC)
        environment = {**os.environ, "STREAMJOIN_LOCAL_DIR": folder, "TMPDIR": folder}
        done = subprocess.run(
            [sys.executable, __file__, mode, f"{folder}/spec.yaml"],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
            start_new_session=True,
        )
        found: dict[str, float] = json.loads(done.stdout.decode().splitlines()[-1])
        return found


def _cpu() -> float:
    """Seconds of all processes of this session, and of those that they have outlived."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(values[3]) == os.getsid(0):
            ticks += sum(map(int, values[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main(pairs: int) -> None:
    runs: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    for number in range(pairs):
        for mode in ("without", "with") if number % 2 else ("with", "without"):
            runs[mode].append(measured(mode))
            print(mode, runs[mode][-1], flush=True)
    text = table(runs)
    (Path(__file__).parent / "results" / "metrics.md").write_text(f"# What figures cost\n\n{text}\n")
    print(text)


def table(runs: dict[str, list[dict[str, float]]]) -> str:
    """Of the outcomes by mode."""
    each = {mode: [1000 * r["cpu"] / r["batches"] for r in found] for mode, found in runs.items()}
    own = [1000 * r["figures"] / r["batches"] for r in runs["with"]]
    read = [1000 * r["exposition"] / r["scrapes"] for r in runs["with"]]
    both = [(r["figures"] + r["exposition"]) / r["cpu"] for r in runs["with"]]
    seldom = [(r["figures"] + r["exposition"] / 15) / r["cpu"] for r in runs["with"]]
    lines = [
        f"{ROWS:,} rows in batches of {BATCH:,}, {UNITS} units; {len(both)} pairs of runs; medians (least to most)",
        "",
        "| | |",
        "|---|---|",
        f"| CPU of a batch without figures | {_row(each['without'])} ms |",
        f"| CPU of a batch with figures, scraped every second | {_row(each['with'])} ms |",
        f"| of it: receipts to figures, for each batch | {_row(own)} ms |",
        f"| of it: one answer of /metrics | {_row(read)} ms |",
        f"| both, of all CPU, read every second | {100 * statistics.median(both):.2f} % |",
        f"| both, of all CPU, read every 15 seconds | {100 * statistics.median(seldom):.2f} % |",
    ]
    return "\n".join(lines)


def _row(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    if sys.argv[1:2] in (["with"], ["without"]):
        outcome = (with_figures if sys.argv[1] == "with" else without)(Path(sys.argv[2]))
        print(json.dumps({**outcome, "cpu": _cpu() - outcome["before"]}), flush=True)
        os._exit(0)
    main(int(sys.argv[1]) if sys.argv[1:] else 3)
