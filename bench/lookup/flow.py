"""The whole way of rows that meet tables, on two cores: `python bench/lookup/flow.py
[--quick]`.

    files ─► map tasks ─► exchange ─► units ─► lookup in a warm cache of 1 M keys ─► counted and dropped

    nothing              a table of one row: the rest of the way, and the ceiling of the others
    full                 1 M rows of files
    incremental          1 M rows of a PostgreSQL on this machine; 3 % of the rows have keys that no batch had before
    incremental, warm    the second half of the batches is the first half once more
    three tables         1 M rows each, of files: a consumer's click, the click's product, the consumer: the TPC job of BS-Join

They take turns, `--runs` times. Rows/s are those of the second half of a run, from trigger to commit; CPU
seconds, of the JVM and of all Python processes, are what other jobs on the machine disturb less. Writes
results/flow.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from joinlib.compiled import compiled  # noqa: E402
from joinlib.direct.report import Report  # noqa: E402
from joinlib.lookup.used import Used, total  # noqa: E402
from joinlib.source.zipf import zipf  # noqa: E402
from joinlib.spark.job import started  # noqa: E402
from joinlib.spec import parse  # noqa: E402
from tests.postgres.database import PASSWORD, Database  # noqa: E402

SQL = "SELECT o.k AS k, o.v AS v, t.s AS s FROM orders o JOIN t ON o.k = t.k"
THREE = (
    "SELECT o.k AS k, c.product AS product, p.name AS name, t.s AS s FROM orders o"
    " JOIN clicks c ON o.k = c.consumer JOIN products p ON c.product = p.product JOIN t ON o.k = t.k"
)
SCHEMAS = {
    "t": "k BIGINT, s STRING",
    "clicks": "consumer BIGINT, product BIGINT",
    "products": "product BIGINT, name STRING",
}
WAYS = ("nothing", "full", "incremental", "incremental, warm", "three tables")
CORES = 2
Result = dict[str, Any]


@dataclass(frozen=True)
class Spent:
    """CPU seconds so far, of this process and all that it has started."""

    jvm: float = 0.0
    python: float = 0.0

    @classmethod
    def now(cls) -> "Spent":
        me = psutil.Process()
        own, jvm, python = me.cpu_times(), 0.0, 0.0
        for child in me.children(recursive=True):
            try:
                name, t = child.name(), child.cpu_times()
            except psutil.NoSuchProcess:  # a worker that has ended is in its parent's figures
                continue
            if name == "java":
                jvm += t.user + t.system
            else:  # a forked one has another name
                python += t.user + t.system + t.children_user + t.children_system
        return cls(jvm, python + own.user + own.system)

    def since(self, before: "Spent", rows: int) -> Result:
        """For a million of rows."""
        millions = rows / 1e6
        return {"JVM": (self.jvm - before.jvm) / millions, "Python": (self.python - before.python) / millions}


def made(folder: Path, rows: int, files: int, keys: int) -> dict[str, pa.Table]:
    """The stream's files, Zipf 1.1; and the tables."""
    draw = np.random.default_rng(1)
    (folder / "orders").mkdir()
    for at in range(files):
        k = pa.array(zipf(draw.random(rows // files), keys, 1.1))
        pq.write_table(pa.table({"k": k, "v": k}), folder / "orders" / f"{at:03d}.parquet")
    numbers = np.arange(keys)
    texts = np.char.add("customer-", np.char.zfill((numbers % 100_000).astype(str), 5))
    return {
        "t": pa.table({"k": numbers, "s": texts}),
        "clicks": pa.table({"consumer": numbers, "product": draw.permutation(numbers)}),
        "products": pa.table({"product": numbers, "name": np.char.replace(texts, "customer", "product")}),
    }


def stream(made: Path, folder: Path, *, twice: bool) -> None:
    """The files that were made; or their first half, and the same once more."""
    folder.mkdir()
    files = sorted(made.iterdir())
    if twice:
        files = files[: len(files) // 2] * 2
    for at, file in enumerate(files):
        (folder / f"{at:03d}.parquet").hardlink_to(file)


def spec(folder: Path, tables: dict[str, Result], units: int) -> dict[str, Any]:
    given = {name: {"schema": SCHEMAS[name], **table} for name, table in tables.items()}
    files = {"path": "orders", "maxFilesPerBatch": 1, "orderBy": "name"}
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "bench"},
        "spec": {
            "sql": THREE if "clicks" in tables else SQL,
            "inputs": {"orders": {"schema": "k BIGINT, v BIGINT", "files": files}, **given},
            "output": {"noop": {}},
            "join": {"units": units},
            "batch": {"maxRows": 10_000_000},
            "checkpoint": {"path": str(folder / "checkpoint")},
        },
    }


def run(folder: Path, tables: dict[str, Result], units: int, warm: int) -> Result:
    """One run. `warm`: batches that are not measured."""
    reports: list[Report] = []
    spent: list[Spent] = []

    def done(report: Report) -> None:
        reports.append(report)
        spent.append(Spent.now())

    plan = compiled(parse(json.dumps(spec(folder, tables, units)), "bench.yaml", folder), CORES)
    with started(plan, done, until_done=True, cores=CORES) as job:
        while not job.wait(0.1):
            pass
        phases = {p["batchId"]: p["durationMs"] for p in job.progress(-1)}
    took = {batch: phase["triggerExecution"] / 1000 for batch, phase in phases.items()}
    batches = [r for r in reports[warm:] if r.rows_in]
    rows = sum(r.rows_in for r in batches)
    used: Used = total(t for r in batches for receipt in r.receipts for t in receipt.tables)
    return {
        "rows/s": statistics.median(r.rows_in / took[r.batch] for r in batches),
        "batch rows": batches[0].rows_in,
        "batch seconds": [took[r.batch] for r in batches],
        "batch milliseconds": {
            phase: statistics.median(phases[r.batch].get(phase, 0) for r in batches)
            for phase in phases[batches[0].batch]
        },
        "CPU seconds for 1 M rows": spent[warm + len(batches) - 1].since(spent[warm - 1], rows),
        "unit seconds for 1 M rows": sum(x.seconds for r in batches for x in r.receipts) / rows * 1e6,
        "hit share": used.hits / max(used.hits + used.misses, 1),
        "results": sum(r.rows_out for r in batches),
    }


def best(runs: list[Result]) -> Result:
    """The run in the middle by rows/s, with the rows/s of all."""
    middle = sorted(runs, key=lambda r: float(r["rows/s"]))[len(runs) // 2]
    return {**middle, "rows/s of each run": [round(r["rows/s"]) for r in runs]}


def main() -> None:
    """All ways, in turns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, to see that everything runs")
    parser.add_argument("--units", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3, help="of each way; the middle one counts")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    rows, files, keys = (400_000, 4, 100_000) if options.quick else (15_000_000, 10, 1_000_000)
    runs: dict[str, list[Result]] = {way: [] for way in options.ways}
    os.environ["PGPASSWORD"] = PASSWORD
    with Database(log_statement="none", shared_buffers="256MB") as db, tempfile.TemporaryDirectory() as kept:
        tables = made(Path(kept), rows, files, keys)
        db.fill("t", tables["t"])
        db.execute("CREATE UNIQUE INDEX ON t (k)")
        for way in list(options.ways) * options.runs:
            folder = Path(kept) / f"{way}-{len(runs[way])}"
            folder.mkdir()
            stream(Path(kept) / "orders", folder / "orders", twice=way == "incremental, warm")
            given = {}
            for name in SCHEMAS if way == "three tables" else ["t"]:
                (folder / name).mkdir()
                rows_of = tables[name].slice(0, 1) if way == "nothing" else tables[name]
                pq.write_table(rows_of, folder / name / "0.parquet")
                given[name] = {"role": "table", "files": {"path": name}}
            if way.startswith("incremental"):
                asked = {**db.fields, "table": "t", "cache": "incremental", "budget": "512Mi"}
                given = {"t": {"postgres": asked}}
            runs[way].append(run(folder, given, options.units, files // 2))
            print(way, json.dumps(runs[way][-1]), flush=True)
    path = Path(__file__).parent / "results" / ("flow-quick.json" if options.quick else "flow.json")
    known = json.loads(path.read_text()) if path.exists() else {}
    results = {way: known[way] for way in WAYS if way in known} | {way: best(runs[way]) for way in runs}
    path.write_text(
        json.dumps({"units": options.units, "keys": keys, "rows": rows, **results}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
