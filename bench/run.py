"""`make bench`: how fast is the join of two streams, beside Spark's own and Flink's, on the same rows?

Every system is a command in a process of its own; all of them run once before any runs again, each repetition
starting with another one, so that a busy or slow hour of the machine falls on all alike. What is measured,
and how: bench/README.md.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import data
import report
import task
from machine import facts
from measure import Terms, measure, prepare, warm_page_cache
from outcome import Failure, Outcome
from systems import SYSTEMS

RESULTS = Path(__file__).parent / "results"
WORK = task.CACHE / "work"


def order(names: list[str], repetition: int) -> list[str]:
    """All systems, starting with another one each time."""
    first = repetition % len(names)
    return names[first:] + names[:first]


def run(names: list[str], shape: data.Shape, repetitions: int, limit: float) -> Iterator[Outcome | Failure]:
    """Every system, `repetitions` times, interleaved; each run within `limit` seconds."""
    folder = data.ensure(shape)
    terms = Terms(task.read(folder), limit)
    warm_page_cache(folder)
    prepare()
    WORK.mkdir(parents=True, exist_ok=True)
    for repetition in range(repetitions):
        for name in order(names, repetition):
            work = WORK / f"{name}-{os.getpid()}-{repetition}"
            log = WORK / f"{name}-{repetition}.log"
            one = measure(name, SYSTEMS[name](folder, work), log, terms)
            sys.stderr.write(f"{repetition + 1}/{repetitions} {said(one)}\n")
            yield one


def said(one: Outcome | Failure) -> str:
    """A run in one line, for whoever waits."""
    if isinstance(one, Failure):
        return f"{one.system}: failed, {one.reason}"
    peak = f"{one.peak_rss_mb:,.0f} MB" if one.peak_rss_mb else "unknown memory"
    return f"{one.system}: {one.rate:,.0f} rows/s, first result {one.seconds_first_result:.1f} s, {peak}"


def keep(path: Path, context: dict[str, Any], ended: list[Outcome | Failure]) -> None:
    """Writes the raw outcomes."""
    kept = {
        "context": context,
        "outcomes": [asdict(one) for one in ended if isinstance(one, Outcome)],
        "failures": [asdict(one) for one in ended if isinstance(one, Failure)],
    }
    path.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> int:
    """Run, keep the raw outcomes, write the table and the plot; 1 if any run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an eighth of the rows, once")
    parser.add_argument("--repetitions", type=int, help="how often each system runs (default 3; quick: 1)")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--name", help="of the files in bench/results")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds that one run may take")
    args = parser.parse_args()
    shape = data.QUICK if args.quick else data.FULL
    repetitions = args.repetitions or (1 if args.quick else 3)
    context = {
        "rows_per_input": shape.rows,
        "keys": shape.keys,
        "rows_per_batch": len(data.INPUTS) * shape.file_rows,
        "repetitions": repetitions,
        **facts(),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{args.name or ('two-inputs-quick' if args.quick else 'two-inputs')}.json"
    ended: list[Outcome | Failure] = []
    for one in run(args.systems, shape, repetitions, args.limit):
        ended.append(one)
        keep(path, context, ended)  # what has been measured stays, whatever happens to the rest
    print(report.write(path).read_text())
    return 1 if any(isinstance(one, Failure) for one in ended) else 0


if __name__ == "__main__":
    sys.exit(main())
