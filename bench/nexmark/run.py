"""Eight queries of Nexmark, beside Flink: events a second, state, and the time to the first result.

    .venv/bin/python bench/nexmark/run.py                     # all, 10 M events, about an hour
    .venv/bin/python bench/nexmark/run.py q3 q20 --systems streamjoin flink-heap
    .venv/bin/python bench/nexmark/run.py --quick             # half a million events, with the check of ours

Each outcome is written when it is had. What is measured, and how: README.md.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
import asked as texts
import events
import task
from machine import facts
from measure import Terms, measure, warm_page_cache
from outcome import Failure, Outcome

HERE = Path(__file__).parent
RESULTS = HERE / "results"
WORK = task.CACHE / "work"
LIMIT_S = 1800
Command = Callable[[Path, Path, texts.Asked], list[str]]


def ours(*options: str) -> Command:
    """StreamJoin's command."""

    def command(data: Path, work: Path, asked: texts.Asked) -> list[str]:
        script = str(HERE / "streamjoin_nexmark.py")
        return [script, "--data", str(data), "--work", str(work), "--query", asked.name, *options]

    return command


def flink(state: str, *options: str) -> Command:
    """Flink's command."""

    def command(data: Path, work: Path, asked: texts.Asked) -> list[str]:
        file = work.with_suffix(".sql")
        file.write_text(asked.for_flink)
        script = str(HERE.parent / "peers" / "flink" / "flink.py")
        given = ["--data", str(data), "--work", str(work), "--query", str(file), "--changes", "events"]
        return [script, *given, "--state", state, *options, "--inputs", *asked.inputs]

    return command


SYSTEMS: Mapping[str, Command] = {
    "streamjoin": ours(),
    "flink-heap": flink("heap"),
    "flink-heap-mini-batch": flink("heap", "--mini-batch", "5000"),
    "flink-rocksdb": flink("rocksdb", "--checkpoint", "10 s", "--measure-state"),
}
CHECKED = {"streamjoin-checked": ours("--keep")}


def one(system: str, command: Command, asked: texts.Asked, data: Path) -> Outcome | Failure:
    """One run, held to the right number of rows."""
    for name in asked.inputs:
        warm_page_cache(data / name)
    given = task.read(data)
    rows = sum(events.OF_50[name] for name in asked.inputs) * given.rows // 50
    terms = Terms(replace(given, rows=rows, results=texts.answers(data, asked)), LIMIT_S)
    work = WORK / f"nexmark-{system}-{asked.name}"
    return measure(system, [sys.executable, *command(data, work, asked)], work.with_suffix(".log"), terms)


def table(known: Mapping[str, Any]) -> str:
    """The outcomes as a table: a line for each query, a column for each system."""
    systems = [s for s in (*SYSTEMS, *CHECKED) if any(s in runs for runs in known["queries"].values())]
    lines = ["| query | " + " | ".join(systems) + " |", "|---|" + "---:|" * len(systems)]
    for name, runs in known["queries"].items():
        cells = [_cell(runs[s], runs) if s in runs else "" for s in systems]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(run: Mapping[str, Any], runs: Mapping[str, Any]) -> str:
    if "reason" in run:
        return str(run["reason"])
    rate = run["rows"] / run["seconds_total"] / 1000
    state = run.get("state_mb") or run.get("extra", {}).get("checkpoint_mb")
    told = f"{rate:,.0f} K/s, {run['peak_rss_mb']:,.0f} MB" if run.get("peak_rss_mb") else f"{rate:,.0f} K/s"
    return told + (f", state {state:,.0f} MB" if state else "")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("queries", nargs="*", choices=[*texts.QUERIES, []], metavar="QUERY")
    asked.add_argument("--systems", nargs="*", choices=[*SYSTEMS, *CHECKED], default=None)
    asked.add_argument(
        "--quick", action="store_true", help="half a million events; ours is run once more and checked"
    )
    asked.add_argument("--tiny", action="store_true", help="the same of 20,000 events: does everything run?")
    given = asked.parse_args()
    small = given.quick or given.tiny
    data = events.ensure(events.TINY if given.tiny else events.QUICK if small else events.Shape())
    all_systems = {**SYSTEMS, **CHECKED}
    systems = given.systems or ([*all_systems] if small else [*SYSTEMS])
    RESULTS.mkdir(exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    size = "-tiny" if given.tiny else "-quick" if given.quick else ""
    path = (WORK if given.tiny else RESULTS) / f"nexmark{size}.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"queries": {}}
    known["machine"] = facts()
    failed = False
    for query in given.queries or texts.QUERIES:
        for system in systems:
            found = one(system, all_systems[system], texts.QUERIES[query], data)
            failed |= isinstance(found, Failure)
            known["queries"].setdefault(query, {})[system] = asdict(found)
            path.write_text(json.dumps(known, indent=1) + "\n")
            sys.stderr.write(f"{query}, {system}: {_cell(asdict(found), {})}\n")
    path.with_suffix(".md").write_text(table(known))
    print(table(known))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
