"""The whole way of rows that meet tables, through Spark on two cores: `python bench/lookup/flow.py [--quick]`.

    files ─► map tasks ─► exchange ─► units ─► lookup in a warm cache of 1 M keys ─► counted and dropped

Both ways of keeping 1 M rows: `full` (of files) and `incremental` (of a PostgreSQL on this machine, which is hardly asked once
the first half of the batches is done). Rows/s are those of the second half, from trigger to commit. Writes results/flow.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from joinlib.lookup.used import Used, total  # noqa: E402
from joinlib.source.zipf import zipf  # noqa: E402
from joinlib.spark.compiled import compiled  # noqa: E402
from joinlib.spark.job import Report, started  # noqa: E402
from joinlib.spec import parse  # noqa: E402
from tests.postgres.database import PASSWORD, Database  # noqa: E402

SQL = "SELECT o.k AS k, o.v AS v, t.s AS s FROM orders o JOIN t ON o.k = t.k"
CORES = 2
Result = dict[str, Any]


def made(folder: Path, rows: int, files: int, keys: int) -> pa.Table:
    """The stream's files, Zipf 1.1; and the table."""
    draw = np.random.default_rng(1)
    (folder / "orders").mkdir()
    for at in range(files):
        k = pa.array(zipf(draw.random(rows // files), keys, 1.1))
        pq.write_table(pa.table({"k": k, "v": k}), folder / "orders" / f"{at:03d}.parquet")
    numbers = np.arange(keys)
    texts = np.char.add("customer-", np.char.zfill((numbers % 100_000).astype(str), 5))
    return pa.table({"k": numbers, "s": texts})


def spec(folder: Path, table: dict[str, Any], units: int) -> dict[str, Any]:
    stream = {"path": "orders", "maxFilesPerBatch": 1, "orderBy": "name"}
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "bench"},
        "spec": {
            "sql": SQL,
            "inputs": {
                "orders": {"schema": "k BIGINT, v BIGINT", "files": stream},
                "t": {"schema": "k BIGINT, s STRING", **table},
            },
            "output": {"noop": {}},
            "join": {"units": units},
            "batch": {"maxRows": 10_000_000},
            "checkpoint": {"path": str(folder / "checkpoint")},
        },
    }


def run(folder: Path, table: dict[str, Any], units: int, warm: int) -> Result:
    """One run. `warm`: batches that are not measured."""
    reports: list[Report] = []
    plan = compiled(parse(json.dumps(spec(folder, table, units)), "bench.yaml", folder), CORES)
    with started(plan, reports.append, until_done=True, cores=CORES) as job:
        while not job.wait(0.1):
            pass
        took = {p["batchId"]: p["durationMs"]["triggerExecution"] / 1000 for p in job.query.recentProgress}
    batches = [r for r in reports[warm:] if r.rows_in]
    used: Used = total(t for r in batches for receipt in r.receipts for t in receipt.tables)
    return {
        "rows/s": statistics.median(r.rows_in / took[r.batch] for r in batches),
        "rows/s of all": sum(r.rows_in for r in batches) / sum(took[r.batch] for r in batches),
        "batch rows": batches[0].rows_in,
        "batch seconds": [took[r.batch] for r in batches],
        "unit seconds for 1 M rows": sum(x.seconds for r in batches for x in r.receipts)
        / sum(r.rows_in for r in batches)
        * 1e6,
        "hit share": used.hits / max(used.hits + used.misses, 1),
        "results": sum(r.rows_out for r in batches),
    }


def main() -> None:
    """Both ways, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs")
    parser.add_argument("--units", type=int, default=2)
    options = parser.parse_args()
    rows, files, keys = (400_000, 4, 100_000) if options.quick else (12_000_000, 8, 1_000_000)
    results: Result = {"units": options.units, "keys": keys, "rows": rows}
    os.environ["PGPASSWORD"] = PASSWORD
    with Database(log_statement="none", shared_buffers="256MB") as db, tempfile.TemporaryDirectory() as kept:
        table = made(Path(kept), rows, files, keys)
        for way in ("full", "incremental"):
            folder = Path(kept) / way
            folder.mkdir()
            (folder / "orders").symlink_to(Path(kept) / "orders")
            if way == "full":
                (folder / "t").mkdir()
                pq.write_table(table, folder / "t" / "0.parquet")
                given: dict[str, Any] = {"role": "table", "files": {"path": "t"}}
            else:
                db.fill("t", table)
                db.execute("CREATE UNIQUE INDEX ON t (k)")
                given = {"postgres": {**db.fields, "table": "t", "cache": way, "budget": "512Mi"}}
            results[way] = run(folder, given, options.units, files // 2)
            print(way, json.dumps(results[way]), flush=True)
    path = Path(__file__).parent / "results" / ("flow-quick.json" if options.quick else "flow.json")
    path.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
