"""StreamJoin's side: the same join as a spec file, run by the code behind `streamjoin run FILE --until-done`."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import command
import task
import yaml
from task import Task
from timed import Timed, run_to_end

if TYPE_CHECKING:
    from joinlib.direct.report import Report


def spec(args: argparse.Namespace, given: Task) -> dict[str, Any]:
    """The join as a user would write it: one file of each input a batch, results counted and dropped, or
    kept.
    """
    inputs = {
        name: {
            "schema": given.inputs[name],
            "files": {"path": str(args.data / name), "format": "parquet", "maxFilesPerBatch": 1},
        }
        for name in args.inputs or given.inputs
    }
    kept = {"files": {"path": str(args.output), "format": "parquet"}} if args.output else {"noop": {}}
    chosen = {name: value for name, _, value in (text.partition("=") for text in args.join)}
    units = {"units": args.units} if args.units else {}
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "bench"},
        "spec": {
            "sql": args.query.read_text(),
            "inputs": inputs,
            "output": kept,
            "join": {**units, **chosen},
            "batch": {"maxRows": 2 * given.batch_rows},  # files are the limit
            "checkpoint": {"path": str(args.work / "checkpoint")},
        },
    }


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/measure.py reads."""
    conf = {"spark.driver.memory": args.heap} if args.heap else {}
    said, heard = spec(args, task.read(args.data)), progress(args.progress)
    ran = ran_to_end(said, args.work, args.limit, conf, heard, args.cores)
    # Of a query that names an input twice, or filters it, the reports count other rows than its files have.
    whole = task.rows_of(args.data, args.inputs) if args.inputs and not ran.stopped else None
    return outcome(ran, args, whole)


def ran_to_end(said: dict[str, Any], work: Path, *others: Any) -> Timed:
    """A spec, written to a file and run."""
    file = work / "bench.yaml"
    file.write_text(yaml.safe_dump(said, sort_keys=False))
    return run_to_end(file, *others)


def outcome(ran: Timed, args: argparse.Namespace, rows: int | None = None) -> dict[str, Any]:
    """What a run tells; `rows`: of the files that were read, where the reports count otherwise."""
    read = sum(r.rows_in for _, r in ran.reports)
    assert read, "no rows were read"
    return {
        "system": "streamjoin",
        "rows": rows or read,
        "results": ran.results,
        "seconds_total": ran.ended - ran.begun,
        "seconds_first_result": ran.reports[0][0] - command.launched(),
        "batches": [{**one, "rows": one["rows"] * (rows or read) // read} for one in batches(ran)],
        "stopped": ran.stopped,
        **sizes(ran),
        "disk_mb": megabytes(args.work / "checkpoint"),
        "notes": f"{args.units or 'default'} units; state: segments (mapped) and indexes",
    }


def progress(file: Path | None) -> "Callable[[Report], None]":
    """Writes a line for each batch, so that a run that dies has said how far it came."""

    def write(report: "Report") -> None:
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
    """MB and rows of all that is stored at the end: a unit that the last batch did not touch has what it had."""
    last = {r.unit: r for _, report in ran.reports for r in report.receipts}.values()
    segments, indexes = sum(r.state_bytes for r in last), sum(r.index_bytes for r in last)
    return {
        "state_mb": (segments + indexes) / 1e6,
        "segments_mb": segments / 1e6,
        "state_rows": sum(r.state_rows for r in last),
    }


def megabytes(folder: Path) -> float:
    """Bytes of all files under a folder, in MB."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def parser() -> argparse.ArgumentParser:
    asked = command.parser(__doc__)
    asked.add_argument("--progress", type=Path, help="add a line for each batch to this file")
    asked.add_argument("--output", type=Path, help="keep the results here")
    asked.add_argument("--units", type=int, help="default: a unit for each core")
    asked.add_argument(
        "--join", nargs="*", default=[], metavar="NAME=VALUE", help="further settings of `join`"
    )
    asked.add_argument("--cores", type=int, help="as if there were so many processors")
    asked.add_argument("--heap", help="of the JVM, otherwise the default")
    asked.add_argument("--limit", type=float, default=86400.0, help="seconds until the query is stopped")
    return asked


if __name__ == "__main__":
    command.tell(parser().parse_args(), run)
