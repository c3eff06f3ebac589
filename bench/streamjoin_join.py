"""StreamJoin's side: the same join as a spec file, run by the code behind `streamjoin run FILE --until-done`."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import task
import yaml
from task import Task
from timed import Timed, run_to_end

from joinlib.spark.job import Report

QUERY = Path(__file__).parent / "query.sql"


def spec(
    data: Path,
    work: Path,
    task: Task,
    join: Mapping[str, Any],
    query: Path = QUERY,
    output: Path | None = None,
) -> dict[str, Any]:
    """The join as a user would write it: one file of each input a batch, results counted and dropped, or
    kept.
    """
    inputs = {
        name: {
            "schema": schema,
            "files": {"path": str(data / name), "format": "parquet", "maxFilesPerBatch": 1},
        }
        for name, schema in task.inputs.items()
    }
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "bench"},
        "spec": {
            "sql": query.read_text(),
            "inputs": inputs,
            "output": {"files": {"path": str(output), "format": "parquet"}} if output else {"noop": {}},
            "join": dict(join),
            "batch": {"maxRows": 2 * task.batch_rows},  # files are the limit
            "checkpoint": {"path": str(work / "checkpoint")},
        },
    }


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/run.py reads."""
    launched = float(os.environ.get("BENCH_LAUNCHED", time.time()))
    args.work.mkdir(parents=True, exist_ok=True)
    file = args.work / "bench.yaml"
    join = {"units": args.units, **({"memory": args.memory} if args.memory else {})}
    written = spec(args.data, args.work, task.read(args.data), join, args.query, args.output)
    file.write_text(yaml.safe_dump(written, sort_keys=False))
    conf = {"spark.driver.memory": args.heap} if args.heap else {}
    ran = run_to_end(file, args.limit, conf, progress(args.progress))
    return {
        "system": "streamjoin",
        "rows": sum(r.rows_in for _, r in ran.reports),
        "results": ran.results,
        "seconds_total": ran.ended - ran.begun,
        "seconds_first_result": ran.reports[0][0] - launched,
        "batches": batches(ran),
        "stopped": ran.stopped,
        **sizes(ran),
        "disk_mb": megabytes(args.work / "checkpoint"),
        "notes": f"{args.units} units; state: segments (mapped) and indexes",
    }


def progress(file: Path | None) -> Callable[[Report], None]:
    """Writes a line for each batch, so that a run that dies has said how far it came."""

    def write(report: Report) -> None:
        if file is not None:
            with file.open("a") as lines:
                line = {"at": time.time(), "rows": report.rows_in, "results": report.rows_out}
                lines.write(json.dumps(line) + "\n")

    return write


def batches(ran: Timed) -> list[dict[str, Any]]:
    return [
        {"rows": r.rows_in, "seconds": ran.seconds[r.batch], "results": r.rows_out} for _, r in ran.reports
    ]


def sizes(ran: Timed) -> dict[str, float]:
    """MB and rows of all that is stored at the end."""
    last = ran.reports[-1][1].receipts
    segments, indexes = sum(r.state_bytes for r in last), sum(r.index_bytes for r in last)
    return {
        "state_mb": (segments + indexes) / 1e6,
        "segments_mb": segments / 1e6,
        "state_rows": sum(r.state_rows for r in last),
    }


def megabytes(folder: Path) -> float:
    """Bytes of all files under a folder, in MB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def main() -> None:
    """Run, print the outcome as one line, leave nothing behind but results that are to be kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder as bench/task.py describes it")
    parser.add_argument("--query", type=Path, default=QUERY)
    parser.add_argument("--out", type=Path, help="write the outcome here as well")
    parser.add_argument(
        "--work", type=Path, required=True, help="a folder for spec and checkpoint, removed at the end"
    )
    parser.add_argument("--progress", type=Path, help="add a line for each batch to this file")
    parser.add_argument("--output", type=Path, help="keep the results here")
    parser.add_argument("--units", type=int, default=8)
    parser.add_argument("--memory", help="join.memory")
    parser.add_argument("--heap", help="of the JVM, otherwise the default")
    parser.add_argument("--limit", type=float, default=86400.0, help="seconds until the query is stopped")
    args = parser.parse_args()
    try:
        line = json.dumps(run(args))
    finally:
        shutil.rmtree(args.work, ignore_errors=True)
    if args.out:
        args.out.write_text(line + "\n")
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
