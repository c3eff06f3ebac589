"""Figure 12 of BiStream on a real cluster with a real Prometheus: the rate goes up and down, executors follow, no row is lost.

Accelerated: a period is five seconds, a window ten, and an executor may hold little. `STREAMJOIN_FIGURE=FILE` draws it as the paper does.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests import prometheus
from tests.cluster.jobs import Store, job
from tests.cluster.kube import Kube, Object
from tests.cluster.scaled import changes_in, scaling_of, scraped
from tests.cluster.test_runs import running

NAME = "figure-12"
SQL = """SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p
ON o.k = p.k AND p.t BETWEEN o.t - INTERVAL 4 SECONDS AND o.t + INTERVAL 4 SECONDS"""
LOW, HIGH = 500, 12_000  # rows a second of each input
SPIKE_S = 3
PLAN = ((12, LOW), (SPIKE_S, HIGH), (25, LOW), (75, HIGH), (60, LOW))
EIGHT = ((10, LOW), (180, 14_000), (120, LOW))
FEED = Path(__file__).with_name("feed.py")
EXECUTORS = "app.kubernetes.io/component=executor"


def _document(least: int = 1, most: int = 4, memory: int = 966, patience: int = 90) -> Object:
    """An executor may hold `memory` MiB less 962 of state."""
    inputs = {
        name: {
            "schema": "k BIGINT, v BIGINT, t TIMESTAMP",
            "eventTime": {"column": "t", "delay": "1s"},
            "files": {"path": f"/data/in/{name}", "format": "parquet"},
        }
        for name in ("orders", "payments")
    }
    return job(
        NAME,
        sql=SQL,
        inputs=inputs,
        join={"units": most},
        executors={"min": least, "max": most, "cores": 1, "memory": f"{memory}Mi"},
        scaling={"period": "5s", "votes": 4, "coolDown": "5s", "patience": f"{patience}s"},
    )


def _compare(store: Store) -> tuple[int, int, int]:
    """(rows of the output, rows that are missing, rows that are too many) against DuckDB over the same files."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "data.tar"
        archive.write_bytes(
            store.kube.raw("exec", "store", "--", "tar", "cf", "-", "-C", "/data", "in", f"out/{NAME}")
        )
        subprocess.run(["tar", "xf", archive, "-C", folder], check=True)
        database = duckdb.connect()
        database.sql("SET TimeZone = 'UTC'")
        for name in ("orders", "payments"):
            database.sql(f"CREATE VIEW {name} AS FROM read_parquet('{folder}/in/{name}/*.parquet')")
        got = f"read_parquet('{folder}/out/{NAME}/batch=*/*.parquet', hive_partitioning=false)"
        database.sql(f"CREATE TABLE want AS {SQL}")
        database.sql(f"CREATE TABLE got AS FROM {got}")

        def count(query: str) -> int:
            return int(database.sql(f"SELECT count(*) FROM ({query})").fetchall()[0][0])

        return (
            count("FROM got"),
            count("FROM want EXCEPT ALL FROM got"),
            count("FROM got EXCEPT ALL FROM want"),
        )


def _started(space: Kube, store: Store, folder: Path, document: Object) -> None:
    """The job runs on its least number of executors, and Prometheus knows of it."""
    store("mkdir", "-p", "/data/in/orders", "/data/in/payments")
    space.apply(document)
    scraped(space, NAME, folder)
    running(space, NAME, document["spec"]["executors"]["min"])


def _followed(
    space: Kube, plan: Sequence[tuple[int, int]], look: Callable[[Object], None]
) -> tuple[float, list[tuple[float, Object, int]], dict[str, tuple[str, str]]]:
    """While the rates follow the plan: when that began, (seconds, scaling, executors) every other second, and of each pod when
    it was made and when its container began to run.
    """
    said = ",".join(f"{seconds}:{rate}" for seconds, rate in plan)
    begin = time.time()
    feeder = subprocess.Popen(
        ["kubectl", "-n", space.namespace, "exec", "-i", "store", "--", "python", "-", "/data/in", said],
        stdin=FEED.open("rb"),
    )
    seen: list[tuple[float, Object, int]] = []
    began: dict[str, tuple[str, str]] = {}
    while feeder.poll() is None:
        pods = [p for p in space.every("pods", EXECUTORS) if p["status"]["phase"] == "Running"]
        seen.append((time.time() - begin, scaling_of(space, NAME), len(pods)))
        began = {p["metadata"]["name"]: _began(p) for p in pods} | began
        look(seen[-1][1])
        time.sleep(2)
    assert feeder.returncode == 0
    return begin, seen, began


def _began(pod: Object) -> tuple[str, str]:
    (container,) = pod["status"]["containerStatuses"]
    running = container["state"].get("running") or {}
    return pod["metadata"]["creationTimestamp"], running.get("startedAt", "")


def test_figure_12(
    system: Kube, space: Kube, store: Store, watched: prometheus.Prometheus, tmp_path: Path
) -> None:
    """A spike that is shorter than the votes changes nothing; a step adds executors, its end removes them; output is DuckDB's.

    The operator is killed while executors come: its successor ends what it began.
    """
    _started(space, store, tmp_path, _document())
    restarts = _restarts(space)
    killed = False

    def kill(scaling: Object) -> None:  # another operator goes on from the status
        nonlocal killed
        if scaling.get("phase") == "Growing" and not killed:
            system.run("delete", "pod", *system.names("pods"), "--wait=false")
            killed = True

    begin, seen, began = _followed(space, PLAN, kill)
    end = time.time()

    changes = changes_in([each for _, each, _ in seen])
    step = PLAN[0][0] + PLAN[1][0] + PLAN[2][0]
    report = {"plan": PLAN} | _report(watched, begin, end, changes, seen)
    report |= {
        what: {name: _moment(both[n]) - begin for name, both in began.items() if both[n]}
        for n, what in enumerate(("pods made, s", "containers run, s"))
    }
    print(*(f"{name}: {value}" for name, value in report.items() if name not in ("seen", "held")), sep="\n")
    if figure := os.environ.get("STREAMJOIN_FIGURE"):
        Path(figure).with_suffix(".json").write_text(json.dumps(report))

    assert changes, space.picture()
    assert _at(changes[0]) - begin > step, "the spike changed something"
    assert changes[0]["verdict"] == "ScaleOut"
    assert changes[-1]["verdict"] == "ScaleIn"
    assert max(pods for _, _, pods in seen) >= 3
    space.until(
        "it is small again",
        lambda: scaling_of(space, NAME)["phase"] == "Idle" and scaling_of(space, NAME)["wanted"] <= 2,
    )
    assert _restarts(space) == restarts, "the driver went on"

    rows = space.until("all rows are joined", lambda: _complete(watched, store))
    print(f"{rows} rows, none lost, none doubled")


@pytest.mark.skipif(
    not os.environ.get("STREAMJOIN_EIGHT"), reason="eight executors want a machine of their own"
)
@pytest.mark.timeout(1200)
def test_eight_executors(space: Kube, store: Store, watched: prometheus.Prometheus, tmp_path: Path) -> None:
    """From two to eight and back, as the load says; all of them join; no row is lost, none doubled, the driver goes on.

    Six that start at once have a few cores between them, so they are waited for.
    """
    _started(space, store, tmp_path, _document(2, 8, memory=964, patience=300))
    restarts = _restarts(space)
    begin, seen, _ = _followed(space, EIGHT, lambda _: None)
    report = _report(watched, begin, time.time(), changes_in([each for _, each, _ in seen]), seen)
    print(*(f"{name}: {value}" for name, value in report.items() if name not in ("seen", "held")), sep="\n")
    assert sum("worked" in life for life in report["executors, s"].values()) >= 8
    space.until("it is small again", lambda: len(space.names("pods", EXECUTORS)) == 2)
    assert _restarts(space) == restarts, "the driver went on"
    rows = space.until("all rows are joined", lambda: _complete(watched, store))
    print(f"{rows} rows, none lost, none doubled")


def _complete(watched: prometheus.Prometheus, store: Store) -> int:
    """Rows of the output, once they are those of DuckDB."""
    lag = watched.now("sum(streamjoin_lag_rows)")
    assert lag, "no driver"
    assert float(lag[0]["value"][1]) == 0
    time.sleep(3)
    rows, missing, extra = _compare(store)
    assert extra == 0, f"{extra} of {rows} rows are doubled or wrong"
    return rows if missing == 0 else 0


def _restarts(space: Kube) -> tuple[str, int]:
    pod = space.get("pod", f"{NAME}-driver-0")
    return pod["metadata"]["uid"], sum(c["restartCount"] for c in pod["status"]["containerStatuses"])


def _at(decision: Object) -> float:
    return _moment(decision["at"])


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _report(
    watched: prometheus.Prometheus,
    begin: float,
    end: float,
    changes: list[Object],
    seen: list[tuple[float, Object, int]],
) -> dict[str, Any]:
    """What the paper's figure shows, and how long batches took at rest and while executors came and went."""
    batches = _batches(watched, begin, end)
    moments = [_at(c) for c in changes]
    during = [s for at, s in batches if any(0 <= at - m <= 40 for m in moments)]
    at_rest = [s for at, s in batches if not any(0 <= at - m <= 40 for m in moments)]
    return {
        "changes": [(round(_at(c) - begin, 1), c["verdict"], c["wanted"], c["reason"]) for c in changes],
        "p95 of batches while executors change, s": _quantile(during, 0.95),
        "p95 of batches at rest, s": _quantile(at_rest, 0.95),
        "median of batches at rest, s": _quantile(at_rest, 0.5),
        "slowest batches, s": sorted((s for _, s in batches), reverse=True)[:8],
        "executors, s": _lives(watched, begin, end),
        "seen": [
            (round(at, 1), float(s["load"]) if "load" in s else None, s.get("wanted"), pods)
            for at, s, pods in seen
        ],
        "held": [
            (round(at - begin, 1), held)
            for at, held in _series(watched, "sum(streamjoin_executor_state_bytes)", begin, end)
        ],
    }


def _lives(watched: prometheus.Prometheus, begin: float, end: float) -> dict[str, dict[str, float]]:
    """Of each executor: when it could take tasks, and when it had done the first task of a unit."""
    found: dict[str, dict[str, float]] = {}
    for what, query in (
        ("there", "streamjoin_executor_capacity_bytes"),
        ("worked", "streamjoin_executor_units > 0"),
    ):
        for series in watched.over(query, begin, end, 1):
            times = [float(at) - begin for at, _ in series["values"]]
            found.setdefault(series["metric"]["executor"], {})[what] = round(times[0], 1)
            found[series["metric"]["executor"]]["gone"] = round(times[-1], 1)
    return found


def _series(
    watched: prometheus.Prometheus, query: str, begin: float, end: float
) -> list[tuple[float, float]]:
    found = watched.over(query, begin, end, 1)
    return [(float(at), float(value)) for at, value in found[0]["values"]] if found else []


def _batches(watched: prometheus.Prometheus, begin: float, end: float) -> list[tuple[float, float]]:
    """(when it was done, seconds) of each batch, from count and sum of the histogram at each scrape."""
    counts = dict(_series(watched, "streamjoin_batch_seconds_count", begin, end))
    sums = dict(_series(watched, "streamjoin_batch_seconds_sum", begin, end))
    found, times = [], sorted(counts.keys() & sums.keys())
    for before, after in pairwise(times):
        if (batches := round(counts[after] - counts[before])) > 0:
            found += [(after, (sums[after] - sums[before]) / batches)] * batches
    return found


def _quantile(values: list[float], part: float) -> float | None:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else None
