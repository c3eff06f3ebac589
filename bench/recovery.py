"""How soon does a killed job give results again? 10 M rows of state, every process new, no index on this
machine.

    .venv/bin/python bench/recovery.py --work FOLDER

A first process joins two inputs of 5 M rows each and ends; its indexes go with it, only segments and
checkpoint stay. One more file of each input appears, and a second process goes on. Printed as one JSON line:
seconds from the launch of the second process, and from the start of its query, to the commit of its first
batch.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import task
import yaml
from data import FULL, INPUTS, ensure
from streamjoin_join import parser, spec
from timed import run_to_end

SHAPE = replace(FULL, rows=5_500_000, keys=2_500_000, files=11)  # the last file of each is held back


def go_on(file: Path) -> dict[str, Any]:
    """Runs the job until nothing is left to read; what its first batch saw, and when."""
    launched = float(os.environ.get("BENCH_LAUNCHED", time.time()))
    ran = run_to_end(file)
    at, first = ran.reports[0]
    return {
        "batches": len(ran.reports),
        "seconds_from_launch": round(at - launched, 2),
        "seconds_from_query": round(at - ran.begun, 2),
        "first_batch_rows": first.rows_in,
        "first_batch_results": first.rows_out,
        "state_rows_before": sum(r.state_rows for r in first.receipts) - first.rows_in,
        "results": ran.results,
    }


def run(work: Path, units: int) -> dict[str, Any]:
    """Both processes, one after the other."""
    made = ensure(SHAPE)
    data, file = work / "data", work / "bench.yaml"
    held_back: list[tuple[Path, Path]] = []
    for name in INPUTS:
        (data / name).mkdir(parents=True)
        *early, last = sorted((made / name).glob("*.parquet"))
        for each in early:
            (data / name / each.name).symlink_to(each)
        held_back.append((last, data / name / last.name))
    asked = parser().parse_args(["--data", str(data), "--work", str(work), "--units", str(units)])
    file.write_text(yaml.safe_dump(spec(asked, task.read(made)), sort_keys=False))
    before = _process(file)
    for last, place in held_back:
        place.symlink_to(last)
    after = _process(file)
    expected = task.read(made).results
    if before["results"] + after["results"] != expected:
        sys.exit(f"{before['results']} + {after['results']} results, expected {expected}")
    return {"system": "streamjoin", "shape": asdict(SHAPE), **after}


def _process(file: Path) -> dict[str, Any]:
    """One run of the job in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--go-on", str(file)],
        env={**os.environ, "BENCH_LAUNCHED": str(time.time())},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run, print the outcome as one line, leave nothing behind."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--work", type=Path, help="a folder that does not exist yet, removed at the end")
    asked.add_argument("--units", type=int, default=8)
    asked.add_argument("--go-on", type=Path, help=argparse.SUPPRESS)
    args = asked.parse_args()
    if args.go_on:
        print(json.dumps(go_on(args.go_on)))
        return
    if args.work is None:
        asked.error("--work FOLDER is needed")
    args.work.mkdir(parents=True)
    try:
        print(json.dumps(run(args.work, args.units)))
    finally:
        shutil.rmtree(args.work, ignore_errors=True)


if __name__ == "__main__":
    main()
