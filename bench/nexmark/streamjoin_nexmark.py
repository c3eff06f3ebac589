"""StreamJoin's side: a query of Nexmark as a spec file, run by the code behind `streamjoin run FILE --until-done`.

Results are counted and dropped; with --keep they are written, and what is in the answer at the end is counted.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
import duckdb
import task
import yaml
from asked import QUERIES, Asked
from events import INPUTS, OF_50
from streamjoin_join import batches, megabytes, sizes
from timed import run_to_end

DELAY = "4s"  # as in Flink's tables


def spec(data: Path, work: Path, asked: Asked, units: int, keep: bool) -> dict[str, Any]:
    """As a user would write it: batches are as large as they are by default."""
    inputs = {
        name: {
            "schema": INPUTS[name],
            "files": {"path": str(data / name), "format": "parquet", "orderBy": "name"},
            "eventTime": {"column": "dateTime", "delay": DELAY},
        }
        for name in asked.inputs
    }
    output: dict[str, Any] = {"files": {"path": str(work / "out")}} if keep else {"noop": {}}
    if asked.changing:
        output["mode"] = "changelog"
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": asked.name},
        "spec": {
            "sql": asked.text,
            "inputs": inputs,
            "output": output,
            "join": {"units": units},
            "checkpoint": {"path": str(work / "checkpoint")},
        },
    }


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/measure.py reads."""
    launched = float(os.environ.get("BENCH_LAUNCHED", time.time()))
    asked = QUERIES[args.query]
    args.work.mkdir(parents=True, exist_ok=True)
    file = args.work / "bench.yaml"
    file.write_text(yaml.safe_dump(spec(args.data, args.work, asked, args.units, args.keep), sort_keys=False))
    ran = run_to_end(file)
    told = ran.results
    rows = sum(task.read(args.data).rows * OF_50[name] // 50 for name in asked.inputs)
    # Without rows that a filter drops, and twice where the query names the input twice.
    read = sum(r.rows_in for _, r in ran.reports)
    assert read, "no rows were read"
    return {
        "system": "streamjoin",
        "rows": rows,
        # Of a changelog that is dropped nobody can say what is left in it: the run that keeps it does.
        "results": left(args.work / "out", asked.changing) if args.keep else None if asked.changing else told,
        "seconds_total": ran.ended - ran.begun,
        "seconds_first_result": ran.reports[0][0] - launched,
        "batches": [{**one, "rows": one["rows"] * rows // read} for one in batches(ran)],
        **sizes(ran),
        "disk_mb": megabytes(args.work / "checkpoint"),
        "told": told,
        "notes": f"{args.units} units",
    }


def left(folder: Path, changing: bool) -> int:
    """Rows of the answer that a folder of results adds up to."""
    one = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END" if changing else "1"
    rows = duckdb.sql(f"SELECT sum({one}) FROM read_parquet('{folder}/**/*.parquet')").fetchall()
    return int(rows[0][0] or 0)


def main() -> None:
    """Run, print the outcome as one line, leave nothing behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder of bench/nexmark/events.py")
    parser.add_argument("--work", type=Path, required=True, help="a folder, removed at the end")
    parser.add_argument("--query", choices=QUERIES, required=True)
    parser.add_argument("--units", type=int, default=8)
    parser.add_argument("--keep", action="store_true", help="write the results, and count those that stay")
    args = parser.parse_args()
    try:
        line = json.dumps(run(args))
    finally:
        shutil.rmtree(args.work, ignore_errors=True)
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
