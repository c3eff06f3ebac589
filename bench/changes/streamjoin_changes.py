"""StreamJoin's side: the join of inputs that change, as a spec file, run by the code behind `streamjoin run FILE --until-done`.

Changes that come out are counted and dropped.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
import command
import streamjoin_join
import task
from timed import Timed

KINDS = {
    "append": {},
    "changes": {"changes": {"op": "op"}},
    "upsert": {"changes": {"op": "op"}, "upsert": {"key": ["v"]}},
    "upsert-plain": {"upsert": {"key": ["k"]}},
}


def written(args: argparse.Namespace) -> dict[str, Any]:
    """The spec: what its rows are is said for the inputs that `changing` names, by default for all."""
    said = streamjoin_join.spec(args, task.read(args.data))
    if args.kind != "append":
        for name in args.changing or said["spec"]["inputs"]:
            said["spec"]["inputs"][name] |= KINDS[args.kind]
        said["spec"]["output"]["mode"] = "changelog"
    return said


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/measure.py reads, and what was stored after each batch."""
    ran = streamjoin_join.ran_to_end(written(args), args.work)
    # An upsert leaves out rows as they were: they are changes of the input like others.
    rows = task.read(args.data).rows if args.kind == "upsert" else None
    told = streamjoin_join.outcome(ran, args, rows)
    return told | {"system": f"streamjoin-{args.kind}", "stored_mb": stored(ran)}


def stored(ran: Timed) -> list[float]:
    """MB of segments and indexes after each batch: a unit that a batch did not touch has what it had."""
    known: dict[int, int] = {}
    found = []
    for _, report in ran.reports:
        known |= {r.unit: r.state_bytes + r.index_bytes for r in report.receipts}
        found.append(sum(known.values()) / 1e6)
    return found


def main() -> None:
    parser = streamjoin_join.parser()
    parser.add_argument("--kind", choices=KINDS, required=True, help="what the rows of the inputs are")
    parser.add_argument("--changing", nargs="*", help="the inputs whose rows are that; default: all")
    command.tell(parser.parse_args(), run)


if __name__ == "__main__":
    main()
