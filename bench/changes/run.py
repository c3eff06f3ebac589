"""Joins of inputs that change: how fast, beside append-only inputs and Flink, and how much is stored.

    .venv/bin/python bench/changes/run.py                   # everything, about 25 minutes
    .venv/bin/python bench/changes/run.py speed flink state # some parts
    .venv/bin/python bench/changes/run.py --quick           # small: does everything run?

Each outcome is written when it is had. What is measured, and how: README.md.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
import changing
import data
import draw
import task
import upserts
from machine import facts
from measure import Terms, measure, warm_page_cache
from outcome import Failure, Outcome
from systems import FLINK, script

WORK = task.CACHE / "work"
UPDATES = 10_000_000
Named = tuple[str, Outcome | Failure]


def speed(quick: bool, repetitions: int, updates: int) -> Iterator[Named]:
    """As many changes as rows: half of them updates, inserts in the form of changes, upserts, and append-only rows."""
    append = data.ensure(data.QUICK if quick else data.FULL)
    shape = changing.QUICK if quick else changing.FULL
    half, none = changing.ensure(shape), changing.ensure(replace(shape, updates=0.0, keys=2 * shape.keys))
    sides = [
        ("append", append, "append"),
        ("changes", half, "changes"),
        ("inserts", none, "changes"),
        ("upserts", half, "upsert"),
    ]
    for repetition in range(repetitions):
        first = repetition % len(sides)
        for name, folder, kind in sides[first:] + sides[:first]:
            yield name, _ours(f"speed-{name}", folder, "--kind", kind)


def flink(quick: bool, repetitions: int, updates: int) -> Iterator[Named]:
    """Flink's join of the same changes, with heap state: one run of each mode, whatever `repetitions` says."""
    folder = changing.ensure(changing.QUICK if quick else changing.FULL)
    warm_page_cache(folder)
    terms = Terms(replace(task.read(folder), results=changing.net(folder)), 1200.0)
    for mode in ("upsert", "retract"):
        work = WORK / f"changes-flink-{mode}"
        command = script(FLINK, "--state", "heap", "--changes", mode)(folder, work)
        yield mode, measure(f"flink-{mode}", command, work.with_suffix(".log"), terms)


def state(quick: bool, repetitions: int, updates: int) -> Iterator[Named]:
    """Few keys, many updates: what is stored at the end, beside the rows that were inserted first and nothing else."""
    full = (
        upserts.Shape(keys=10_000, updates=200_000, file_updates=10_000)
        if quick
        else upserts.Shape(updates=updates)
    )
    for name, kind, pairs in (("upserts", "upsert-plain", False), ("pairs", "changes", True)):
        for label, many in ((f"{name}, inserts only", 0), (name, full.updates)):
            folder = upserts.ensure(replace(full, updates=many, pairs=pairs))
            yield label, _ours(f"state-{name}", folder, "--kind", kind, "--changing", "orders")


PARTS = {"speed": speed, "flink": flink, "state": state}


def _ours(name: str, folder: Path, *options: str) -> Outcome | Failure:
    warm_page_cache(folder)
    work = WORK / f"changes-{name}"
    command = script("changes/streamjoin_changes.py", *options)(folder, work)
    return measure(name, command, work.with_suffix(".log"), Terms(task.read(folder), 1800.0))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    asked.add_argument("--quick", action="store_true", help="small data")
    asked.add_argument("--repetitions", type=int, default=1, help="of the part speed, interleaved")
    asked.add_argument("--updates", type=int, default=UPDATES, help="of the part state, of 100 000 keys")
    given = asked.parse_args()
    draw.RESULTS.mkdir(exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    path = draw.RESULTS / ("changes-quick.json" if given.quick else "changes.json")
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    failed = False
    for part in given.parts or PARTS:
        kept = known[part] = {"machine": facts(), "outcomes": []}
        for name, one in PARTS[part](given.quick, given.repetitions, given.updates):
            failed |= isinstance(one, Failure)
            kept["outcomes"].append({"name": name, **asdict(one)})
            said = (
                one.reason
                if isinstance(one, Failure)
                else f"{one.rows / one.seconds_total:,.0f} changes/s, all batches"
            )
            sys.stderr.write(f"{part}, {name}: {said}\n")
            path.write_text(json.dumps(known, indent=1) + "\n")
    for left in WORK.glob("changes-*"):
        if left.is_dir():
            shutil.rmtree(left)
    print(draw.write(path).read_text())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
