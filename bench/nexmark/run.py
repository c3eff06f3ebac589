"""Eight queries of Nexmark, beside Flink: events a second, state, and the time to the first result.

    .venv/bin/python bench/nexmark/run.py                     # all, 10 M events, about an hour
    .venv/bin/python bench/nexmark/run.py q3 q20 --systems streamjoin flink-heap
    .venv/bin/python bench/nexmark/run.py --quick             # half a million events, with the check of ours

Each outcome is written when it is had. What is measured, and how: README.md.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import asked as texts
import events
import task
from measure import Terms, measure, prepare, warm_page_cache
from outcome import Failure, Outcome
from suite import Suite, answers, matrix, options
from systems import FLINK, script

RESULTS = Path(__file__).parent / "results"
WORK = task.CACHE / "work"
LIMIT_S = 1800
BRIEF = ("q3", "q8")  # over in seconds: a checkpoint every 3 s would miss much of their state
Command = Callable[[Path, Path, texts.Asked], list[str]]


def ours(*options: str) -> Command:
    """StreamJoin's command."""

    def command(data: Path, work: Path, asked: texts.Asked) -> list[str]:
        return script("nexmark/streamjoin_nexmark.py", "--name", asked.name, *options)(data, work)

    return command


def flink(state: str, *options: str) -> Command:
    """Flink's command."""

    def command(data: Path, work: Path, asked: texts.Asked) -> list[str]:
        file = work.with_suffix(".sql")
        file.write_text(asked.for_flink)
        given = ["--changes", "events", "--state", state, *options, "--inputs", *asked.inputs]
        if state == "rocksdb":
            given += ["--checkpoint", "500 ms" if asked.name in BRIEF else "3 s", "--measure-state"]
        return script(FLINK, "--query", str(file), *given)(data, work)

    return command


SYSTEMS: Mapping[str, Command] = {
    "streamjoin": ours(),
    "flink-heap": flink("heap"),
    "flink-heap-mini-batch": flink("heap", "--mini-batch", "5000"),
    "flink-rocksdb": flink("rocksdb"),
}
CHECKED = {"streamjoin-checked": ours("--keep")}


def one(query: str, system: str, data: Path) -> Outcome | Failure:
    """One run, held to the right number of rows."""
    asked = texts.QUERIES[query]
    for name in asked.inputs:
        warm_page_cache(data / name)
    right = answers(data, query, asked.inputs, asked.for_duckdb)
    given = replace(task.read(data), rows=task.rows_of(data, asked.inputs), results=right)
    work = WORK / f"nexmark-{system}-{query}"
    command = {**SYSTEMS, **CHECKED}[system](data, work, asked)
    return measure(system, command, work.with_suffix(".log"), Terms(given, LIMIT_S))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(asked, texts.QUERIES, [*SYSTEMS, *CHECKED])
    asked.add_argument(
        "--quick", action="store_true", help="half a million events; ours is run once more and checked"
    )
    asked.add_argument("--tiny", action="store_true", help="the same of 20,000 events: does everything run?")
    asked.add_argument("--events", type=int, default=events.Shape.events, help="so many, of the whole size")
    given = asked.parse_args()
    small, whole = given.quick or given.tiny, events.Shape(given.events)
    data = events.ensure(events.TINY if given.tiny else events.QUICK if small else whole)
    systems = given.systems or ([*SYSTEMS, *CHECKED] if small else [*SYSTEMS])
    RESULTS.mkdir(exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    other = "" if whole == events.Shape() else f"-{given.events}"
    size = "-tiny" if given.tiny else "-quick" if given.quick else other
    path = (WORK if given.tiny else RESULTS) / f"nexmark{size}.json"
    if given.tiny:
        path.unlink(missing_ok=True)
    prepare()
    suite = Suite(path, partial(one, data=data))
    ended = suite.run(dict.fromkeys(given.queries or texts.QUERIES, systems), given.repetitions, given.go_on)
    table = matrix(suite.known()["queries"], [*SYSTEMS, *CHECKED])
    path.with_suffix(".md").write_text(table)
    print(table)
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
