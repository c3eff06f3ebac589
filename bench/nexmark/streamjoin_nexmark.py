"""StreamJoin's side: a query of Nexmark as a spec file, run by the code behind `streamjoin run FILE --until-done`.

Results are counted and dropped; with --keep they are written, and what is in the answer at the end is counted.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
import command
import duckdb
import task
from asked import QUERIES
from streamjoin_join import outcome, ran_to_end

DELAY = "4s"  # as in Flink's tables


def spec(args: argparse.Namespace) -> dict[str, Any]:
    """As a user would write it: batches are as large as they are by default."""
    asked = QUERIES[args.name]
    inputs = {
        name: {
            "schema": task.read(args.data).inputs[name],
            "files": {"path": str(args.data / name), "format": "parquet", "orderBy": "name"},
            "eventTime": {"column": "dateTime", "delay": DELAY},
        }
        for name in asked.inputs
    }
    output: dict[str, Any] = {"files": {"path": str(args.work / "out")}} if args.keep else {"noop": {}}
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
            "join": {"units": args.units} if args.units else {},
            "checkpoint": {"path": str(args.work / "checkpoint")},
        },
    }


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/measure.py reads."""
    asked = QUERIES[args.name]
    ran = ran_to_end(spec(args), args.work)
    found = outcome(ran, args, task.rows_of(args.data, asked.inputs)) | {"told": ran.results}
    if args.keep:
        return found | {"results": left(args.work / "out", asked.changing)}
    # Of a changelog that is dropped nobody can say what is left in it: the run that keeps it does.
    return found | {"results": None} if asked.changing else found


def left(folder: Path, changing: bool) -> int:
    """Rows of the answer that a folder of results adds up to."""
    one = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END" if changing else "1"
    found = duckdb.sql(f"SELECT sum({one}) FROM read_parquet('{folder}/**/*.parquet')")
    assert found is not None
    return int(found.fetchall()[0][0] or 0)


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--name", choices=QUERIES, required=True, help="of the query")
    parser.add_argument("--units", type=int, help="default: a unit for each core")
    parser.add_argument("--keep", action="store_true", help="write the results, and count those that stay")
    command.tell(parser.parse_args(), run)


if __name__ == "__main__":
    main()
