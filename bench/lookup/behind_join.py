"""Rows of two joined streams that ask a database by another key: where they were joined, and in a stage of its own.

    orders (id, k) ⋈ ships (id) ─► t of 1 M keys in a PostgreSQL on this machine, Zipf 1.1

`python bench/lookup/behind_join.py [--quick]`. Both plans take turns, `--runs` times, with a budget that holds all keys
that come, and with one that does not. A run chooses by the table's size; here both are done for both. The share of rows
whose key was kept is that of the whole run; rows/s those of its second half, the median of the runs. Writes
results/behind_join.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from joinlib.compiled import Compiled, compiled, with_tables  # noqa: E402
from joinlib.direct.report import Report  # noqa: E402
from joinlib.lookup.used import total  # noqa: E402
from joinlib.source.zipf import zipf  # noqa: E402
from joinlib.spark.job import started  # noqa: E402
from joinlib.spec import parse  # noqa: E402
from tests.postgres.database import PASSWORD, Database  # noqa: E402

SQL = "SELECT o.k AS k, s.v AS v, t.s AS s FROM orders o JOIN ships s ON o.id = s.id JOIN t ON o.k = t.k"
BUDGETS = {"512 MiB": "512Mi", "16 MiB": "16Mi"}
CORES = 2
Result = dict[str, Any]


def made(folder: Path, rows: int, files: int, keys: int) -> pa.Table:
    """The files of both streams; the table."""
    draw = np.random.default_rng(1)
    for name in ("orders", "ships"):
        (folder / name).mkdir()
    for at in range(files):
        ids = pa.array(draw.permutation(rows // files) + at * (rows // files))
        k = pa.array(zipf(draw.random(rows // files), keys, 1.1))
        pq.write_table(pa.table({"id": ids, "k": k}), folder / "orders" / f"{at:03d}.parquet")
        pq.write_table(pa.table({"id": ids, "v": ids}), folder / "ships" / f"{at:03d}.parquet")
    numbers = np.arange(keys)
    return pa.table({"k": numbers, "s": np.char.add("customer-", numbers.astype(str))})


def spec(folder: Path, given: Path, table: Result, units: int) -> Result:
    def files(name: str) -> Result:
        return {"files": {"path": str(given / name), "maxFilesPerBatch": 1, "orderBy": "name"}}

    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "bench"},
        "spec": {
            "sql": SQL,
            "inputs": {
                "orders": {"schema": "id BIGINT, k BIGINT", **files("orders")},
                "ships": {"schema": "id BIGINT, v BIGINT", **files("ships")},
                "t": {"schema": "k BIGINT, s STRING", "postgres": table},
            },
            "output": {"noop": {}},
            "join": {"units": units},
            "batch": {"maxRows": 10_000_000},
            "checkpoint": {"path": str(folder / "checkpoint")},
        },
    }


def planned(text: str, folder: Path, *, scarce: bool) -> Compiled:
    """Return the plan as if the table did not fit the budget, or did."""
    plan = compiled(parse(text, "bench.yaml", folder), CORES)
    (task,) = plan.source.tables
    lookup = replace(task.lookup, caching=replace(task.lookup.caching, scarce=scarce))
    return with_tables(plan, (replace(task, lookup=lookup),))


def run(plan: Compiled) -> Result:
    reports: list[tuple[float, Report]] = []
    with started(
        plan, lambda r: reports.append((time.perf_counter(), r)), until_done=True, cores=CORES
    ) as job:
        while not job.wait(0.1):
            pass
    batches = [(at, r) for at, r in reports if r.rows_in]
    half = len(batches) // 2
    rows = sum(r.rows_in for _, r in batches[half:])
    used = total(t for _, r in batches for receipt in r.receipts for t in receipt.tables)
    return {
        "rows/s": rows / (batches[-1][0] - batches[half - 1][0]),
        "rows whose key was not kept": used.misses,
        "kept": used.hits / max(used.hits + used.misses, 1),
        "results": sum(r.rows_out for _, r in batches),
    }


def main() -> None:
    """Both plans and budgets, in turns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs")
    parser.add_argument("--units", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rows, files, keys = (100_000, 4, 20_000) if options.quick else (6_000_000, 12, 1_000_000)
    found: dict[str, list[Result]] = {}
    os.environ["PGPASSWORD"] = PASSWORD
    with Database(log_statement="none", shared_buffers="256MB") as db, tempfile.TemporaryDirectory() as kept:
        db.fill("t", made(Path(kept), rows, files, keys))
        db.execute("CREATE UNIQUE INDEX ON t (k)")
        for turn in range(options.runs):
            for budget, size in BUDGETS.items():
                for joined in (True, False):
                    way = f"{'where they were joined' if joined else 'in a stage of its own'}, {budget}"
                    folder = Path(kept) / f"{turn}-{len(found)}-{budget}-{joined}"
                    folder.mkdir()
                    asked = {**db.fields, "table": "t", "cache": "incremental", "budget": size}
                    text = json.dumps(spec(folder, Path(kept), asked, options.units))
                    found.setdefault(way, []).append(run(planned(text, folder, scarce=not joined)))
                    print(way, json.dumps(found[way][-1]), flush=True)
    told = {
        way: {name: statistics.median(r[name] for r in runs) for name in runs[0]}
        | {"rows/s of each run": [round(r["rows/s"]) for r in runs]}
        for way, runs in found.items()
    }
    path = Path(__file__).parent / "results" / f"behind_join{'-quick' if options.quick else ''}.json"
    path.write_text(
        json.dumps({"units": options.units, "keys": keys, "rows": 2 * rows, **told}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
