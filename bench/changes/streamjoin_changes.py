"""StreamJoin's side: the join of inputs that change, as a spec file, run by the code behind `streamjoin run FILE --until-done`.

Changes that come out are counted and dropped.
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
import task
import yaml
from streamjoin_join import QUERY, batches, megabytes, sizes, spec
from timed import Timed, run_to_end

KINDS = {
    "append": {},
    "changes": {"changes": {"op": "op"}},
    "upsert": {"changes": {"op": "op"}, "upsert": {"key": ["v"]}},
    "upsert-plain": {"upsert": {"key": ["k"]}},
}


def written(args: argparse.Namespace) -> dict[str, Any]:
    """The spec: what its rows are is said for the inputs that `changing` names, by default for all."""
    said = spec(args.data, args.work, task.read(args.data), {"units": args.units}, args.query)
    if args.kind != "append":
        for name in args.changing or said["spec"]["inputs"]:
            said["spec"]["inputs"][name] |= KINDS[args.kind]
        said["spec"]["output"]["mode"] = "changelog"
    return said


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/measure.py reads, and what was stored after each batch."""
    launched = float(os.environ.get("BENCH_LAUNCHED", time.time()))
    args.work.mkdir(parents=True, exist_ok=True)
    file = args.work / "bench.yaml"
    file.write_text(yaml.safe_dump(written(args), sort_keys=False))
    ran = run_to_end(file)
    rows = sum(r.rows_in for _, r in ran.reports)
    # An upsert leaves out rows as they were: they are changes of the input like others.
    all_rows = task.read(args.data).rows if args.kind == "upsert" else rows
    return {
        "system": f"streamjoin-{args.kind}",
        "rows": all_rows,
        "results": ran.results,
        "seconds_total": ran.ended - ran.begun,
        "seconds_first_result": ran.reports[0][0] - launched,
        "batches": [{**one, "rows": one["rows"] * all_rows / rows} for one in batches(ran)],
        **sizes(ran),
        "disk_mb": megabytes(args.work / "checkpoint"),
        "stored_mb": stored(ran),
        "notes": f"{args.units} units",
    }


def stored(ran: Timed) -> list[float]:
    """MB of segments and indexes after each batch: a unit that a batch did not touch has what it had."""
    known: dict[int, int] = {}
    found = []
    for _, report in ran.reports:
        known |= {r.unit: r.state_bytes + r.index_bytes for r in report.receipts}
        found.append(sum(known.values()) / 1e6)
    return found


def main() -> None:
    """Run, print the outcome as one line, leave nothing behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder as bench/task.py describes it")
    parser.add_argument(
        "--work", type=Path, required=True, help="a folder for spec and checkpoint, removed at the end"
    )
    parser.add_argument("--kind", choices=KINDS, required=True, help="what the rows of the inputs are")
    parser.add_argument("--changing", nargs="*", help="the inputs whose rows are that; default: all")
    parser.add_argument("--query", type=Path, default=QUERY)
    parser.add_argument("--units", type=int, default=8)
    args = parser.parse_args()
    try:
        line = json.dumps(run(args))
    finally:
        shutil.rmtree(args.work, ignore_errors=True)
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
