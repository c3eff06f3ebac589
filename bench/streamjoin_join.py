"""StreamJoin's side: the same join as a spec file, run by the command that a user runs.

Writes the spec into the work folder, calls `streamjoin run FILE --until-done`, and turns the command's own account
of its batches into the outcome that bench/run.py reads.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

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
    command = Path(sys.executable).with_name("streamjoin")
    if not command.exists():
        raise SystemExit(f"streamjoin_join: no command {command}; run `make setup`")
    work.mkdir(parents=True, exist_ok=True)
    file = work / "bench.yaml"
    file.write_text(yaml.safe_dump(spec(data, work, units), sort_keys=False))
    subprocess.run([command, "run", file, "--until-done"], check=True, stdout=sys.stderr, cwd=work)
    return {"system": "streamjoin", **account(work, launched), "disk_mb": megabytes(work / "checkpoint")}


def account(work: Path, launched: float) -> dict[str, Any]:
    """Rows, results, seconds and batches of the run that just ended, as the command told them.

    To fill in: rows, results, seconds_total (query start to end), seconds_first_result (since `launched`, in
    epoch seconds), batches ({rows, seconds} each).
    """
    raise SystemExit("streamjoin_join: the command gives no account of its batches yet; see account()")


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
