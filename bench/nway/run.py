"""Joins of four inputs: as one operator, as a chain, and by the peers; and with less memory than state.

    .venv/bin/python bench/nway/run.py                    # everything
    .venv/bin/python bench/nway/run.py speed memory       # some parts: convert, answer, speed, memory
    .venv/bin/python bench/nway/run.py memory --repetitions 5
    .venv/bin/python bench/nway/run.py --quick            # small: does everything run?
    .venv/bin/python bench/nway/run.py --go-on            # what an interrupted run has not done yet

Each outcome is written when it is had. What is measured, and how: README.md.
"""

import argparse
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
import answer
import convert
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


@dataclass(frozen=True)
class Size:
    """How large the parts are: the scale of TPC-DS for `speed` and for `answer`, and the runs of `memory`."""

    scale: float
    checked: float
    limits: limits.Sizes


SIZES = {
    "full": Size(10, 1, limits.FULL), "quick": Size(1, 1, limits.QUICK), "tiny": Size(0.01, 0.01, limits.TINY)
}  # fmt: skip


def conversions(size: Size) -> Outcomes:
    for name in convert.TABLE_3:
        yield name, partial(convert.converted, name)


def answers(size: Size) -> Outcomes:
    yield (
        f"scale {size.checked:g}",
        lambda: answer.compared(tpcds.ensure(tpcds.Shape(size.checked)), WORK / "nway-answer"),
    )


def speeds(size: Size) -> Outcomes:
    def measured(name: str) -> dict[str, Any]:
        data = tpcds.ensure(tpcds.Shape(size.scale))
        warm_page_cache(data)
        work = WORK / f"nway-{name}"
        terms = Terms(task.read(data), speed.LIMITS.get(name, speed.LIMIT) + 90)
        one = measure(name, speed.command(name, data, work), work.with_suffix(".log"), terms)
        return {"ended": isinstance(one, Outcome), "scale": size.scale, **asdict(one)}

    for name in speed.SYSTEMS:
        yield name, partial(measured, name)


def memory(size: Size) -> Outcomes:
    for asked in limits.runs(size.limits):
        yield asked.name, partial(limits.run, asked, WORK / "nway-memory")


PARTS = {"convert": conversions, "answer": answers, "speed": speeds, "memory": memory}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    asked.add_argument("--quick", action="store_true", help="small data")
    asked.add_argument("--tiny", action="store_true", help="data of seconds: does everything run?")
    asked.add_argument("--repetitions", type=int, default=1, help="of speed and memory, interleaved")
    asked.add_argument(
        "--only", default="", help="of speed and memory: runs whose names match this expression"
    )
    asked.add_argument("--limit", type=int, help="seconds for one run of memory")
    asked.add_argument(
        "--go-on", action="store_true", help="keep what an earlier run has measured, do the rest"
    )
    given = asked.parse_args()
    RESULTS.mkdir(exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    path = (
        WORK / "nway-tiny.json"
        if given.tiny
        else RESULTS / ("nway-quick.json" if given.quick else "nway.json")
    )
    size = SIZES["tiny" if given.tiny else "quick" if given.quick else "full"]
    if given.limit:
        size = replace(size, limits=replace(size.limits, limit=given.limit))
    known = json.loads(path.read_text()) if path.exists() else {}
    for part in given.parts or PARTS:
        before = known.get(part, {}).get("outcomes", {}) if given.go_on else {}
        kept = known[part] = {"machine": facts(), "outcomes": before}
        for repetition in range(given.repetitions if part in ("speed", "memory") else 1):
            for name, run in PARTS[part](size):
                if not re.search(given.only, name):
                    continue
                runs = kept["outcomes"].setdefault(name, [])
                if len(runs) > repetition:
                    continue
                began = time.time()
                runs.append(run())
                sys.stderr.write(f"{part}, {name}: {time.time() - began:.0f} s\n")
                path.write_text(json.dumps(known) + "\n")
    for left in WORK.glob("nway-*"):
        if left.is_dir():
            shutil.rmtree(left)
    print(draw.write(path).read_text())


if __name__ == "__main__":
    main()
