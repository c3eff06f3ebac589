"""StreamJoin's side: the same join as a spec file, run by the code behind `streamjoin run FILE --until-done`."""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from timed import run_to_end

QUERY = Path(__file__).parent / "query.sql"
SCHEMA = "k BIGINT, v BIGINT, s STRING"


def spec(data: Path, work: Path, units: int) -> dict[str, Any]:
    """The join as a user would write it: one file of each input a batch, results counted and dropped."""
    inputs = {
        name: {
            "schema": SCHEMA,
            "files": {"path": str(data / name), "format": "parquet", "maxFilesPerBatch": 1},
        }
        for name in ("orders", "payments")
    }
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "bench"},
        "spec": {
            "sql": QUERY.read_text(),
            "inputs": inputs,
            "output": {"noop": {}},
            "join": {"units": units},
            "checkpoint": {"path": str(work / "checkpoint")},
        },
    }


def run(data: Path, work: Path, units: int) -> dict[str, Any]:
    """One run, as the outcome that bench/run.py reads."""
    launched = float(os.environ.get("BENCH_LAUNCHED", time.time()))
    work.mkdir(parents=True, exist_ok=True)
    file = work / "bench.yaml"
    file.write_text(yaml.safe_dump(spec(data, work, units), sort_keys=False))
    ran = run_to_end(file)
    last = ran.reports[-1][1].receipts
    return {
        "system": "streamjoin",
        "rows": sum(r.rows_in for _, r in ran.reports),
        "results": ran.results,
        "seconds_total": ran.ended - ran.begun,
        "seconds_first_result": ran.reports[0][0] - launched,
        "batches": [{"rows": r.rows_in, "seconds": ran.seconds[r.batch]} for _, r in ran.reports],
        "state_mb": sum(r.state_bytes + r.index_bytes for r in last) / 1e6,
        "disk_mb": megabytes(work / "checkpoint"),
        "notes": f"{units} units; state: segments (mapped) and indexes",
    }


def megabytes(folder: Path) -> float:
    """Bytes of all files under a folder, in MB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main() -> None:
    """Run, print the outcome as one line, leave nothing behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder made by bench/data.py")
    parser.add_argument("--out", type=Path, help="write the outcome here as well")
    parser.add_argument(
        "--work", type=Path, required=True, help="a folder for spec and checkpoint, removed at the end"
    )
    parser.add_argument("--units", type=int, default=8)
    args = parser.parse_args()
    try:
        line = json.dumps(run(args.data, args.work, args.units))
    finally:
        shutil.rmtree(args.work, ignore_errors=True)
    if args.out:
        args.out.write_text(line + "\n")
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
