"""Joins of four inputs: as one operator, as a chain, and by the peers; and with less memory than state.

    .venv/bin/python bench/nway/run.py                    # everything, about 25 minutes
    .venv/bin/python bench/nway/run.py speed memory       # some parts: answer, speed, memory
    .venv/bin/python bench/nway/run.py --quick            # small: does everything run?
    .venv/bin/python bench/nway/run.py --go-on            # what an interrupted run has not done yet

Each outcome is written when it is had. What is measured, and how: README.md.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
import answer
import draw
import limits
import speed
import task
import tpcds
from machine import facts
from measure import Terms, measure, warm_page_cache
from outcome import Outcome

RESULTS = Path(__file__).parent / "results"
WORK = task.CACHE / "work"
Outcomes = Iterator[tuple[str, Callable[[], Any]]]  # what it is called, and what gives it


def answers(quick: bool) -> Outcomes:
    yield "scale 1", lambda: answer.compared(tpcds.ensure(tpcds.Shape(1)), WORK / "nway-answer")


def speeds(quick: bool) -> Outcomes:
    scale = 1 if quick else 10

    def measured(name: str) -> dict[str, Any]:
        data = tpcds.ensure(tpcds.Shape(scale))
        warm_page_cache(data)
        work = WORK / f"nway-{name}"
        terms = Terms(task.read(data), speed.LIMITS.get(name, speed.LIMIT) + 90)
        one = measure(name, speed.command(name, data, work), work.with_suffix(".log"), terms)
        return {"ended": isinstance(one, Outcome), "scale": scale, **asdict(one)}

    for name in speed.SYSTEMS:
        yield name, partial(measured, name)


def memory(quick: bool) -> Outcomes:
    for asked in limits.runs(limits.QUICK if quick else limits.FULL):
        yield asked.name, partial(limits.run, asked, WORK / "nway-memory")


PARTS = {"answer": answers, "speed": speeds, "memory": memory}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    asked.add_argument("--quick", action="store_true", help="small data")
    asked.add_argument(
        "--go-on", action="store_true", help="keep what an earlier run has measured, do the rest"
    )
    given = asked.parse_args()
    RESULTS.mkdir(exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    path = RESULTS / ("nway-quick.json" if given.quick else "nway.json")
    known = json.loads(path.read_text()) if path.exists() else {}
    for part in given.parts or PARTS:
        before = known.get(part, {}).get("outcomes", {}) if given.go_on else {}
        kept = known[part] = {"machine": facts(), "outcomes": before}
        for name, run in PARTS[part](given.quick):
            if name in before:
                continue
            began = time.time()
            kept["outcomes"][name] = run()
            sys.stderr.write(f"{part}, {name}: {time.time() - began:.0f} s\n")
            path.write_text(json.dumps(known) + "\n")
    for left in WORK.glob("nway-*"):
        if left.is_dir():
            shutil.rmtree(left)
    print(draw.write(path).read_text())


if __name__ == "__main__":
    main()
