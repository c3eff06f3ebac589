"""Several queries, each by several systems: every outcome is kept when it is had, and all of them make one table.

{"machine": ..., QUERIES: {query: {system: [outcome, ...]}}}
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
from machine import facts
from outcome import Failure, Outcome
from report import number

Runs = Mapping[str, list[Mapping[str, Any]]]  # of each system
One = Callable[[str, str], Outcome | Failure]  # of a query and a system


def options(parser: argparse.ArgumentParser, queries: Iterable[str], systems: Iterable[str]) -> None:
    parser.add_argument("queries", nargs="*", choices=[*queries, []], metavar="QUERY")
    parser.add_argument("--systems", nargs="*", choices=[*systems], metavar="SYSTEM")
    parser.add_argument("--repetitions", type=int, default=1, help="of each system, interleaved")
    parser.add_argument(
        "--go-on", action="store_true", help="keep what an earlier run has measured, do the rest"
    )


@dataclass(frozen=True)
class Suite:
    """What is measured, and the file that keeps it."""

    path: Path
    one: One

    def run(
        self,
        asked: Mapping[str, Iterable[str]],
        repetitions: int = 1,
        go_on: bool = False,
        **conditions: Any,
    ) -> bool:
        """Run each query by its systems, all of them once before any of them again; returns whether none failed."""
        known = self.known()
        known |= {"machine": facts(), **conditions}
        ended = True
        for query, systems in asked.items():
            kept = known["queries"].setdefault(query, {})
            before = {name: len(kept.get(name, [])) if go_on else 0 for name in systems}
            for repetition in range(repetitions):
                for system in (name for name, done in before.items() if repetition >= done):
                    found = self.one(query, system)
                    ended &= isinstance(found, Outcome)
                    kept[system] = [*kept.get(system, [])[:repetition], asdict(found)]
                    self.path.write_text(json.dumps(known, indent=1) + "\n")
                    sys.stderr.write(f"{query}, {system}: {cell(kept[system][-1:])}\n")
        return ended

    def known(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {"queries": {}}


def answers(folder: Path, name: str, inputs: Iterable[str], sql: str) -> int:
    """Rows of a query's answer over the files of a folder, by DuckDB; kept beside them."""
    kept = folder / f"{name}.json"
    if not kept.exists():
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for table in inputs:
                connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder}/{table}/*.parquet')")
            rows = connection.sql(f"SELECT count(*) FROM ({sql})").fetchall()
        kept.write_text(json.dumps(rows[0][0]))
    return int(json.loads(kept.read_text()))


def cell(runs: Iterable[Mapping[str, Any]]) -> str:
    """A system's runs of a query in a few words: the medians."""
    ended = [run for run in runs if "reason" not in run]
    if not ended:
        return str(next(iter(runs))["reason"])
    told = [f"{rate(ended) / 1000:,.0f} K/s", *_size("", median(ended, "peak_rss_mb"))]
    return ", ".join([*told, *_size("state ", median(ended, "state_mb", "checkpoint_mb"))])


def rate(runs: Iterable[Mapping[str, Any]]) -> float:
    """Rows a second through the whole query, its start-up not left out: the median of runs."""
    return statistics.median(run["rows"] / run["seconds_total"] for run in runs)


def median(runs: Iterable[Mapping[str, Any]], *names: str) -> float | None:
    """Of a figure, under the first of these names that a run has it by."""
    told = [{**run.get("extra", {}), **run} for run in runs]
    known = [next((run[n] for n in names if run.get(n) is not None), None) for run in told]
    return statistics.median(k for k in known if k is not None) if any(k is not None for k in known) else None


def matrix(queries: Mapping[str, Runs], order: Iterable[str]) -> str:
    """A line for each query, a column for each system."""
    systems = [s for s in order if any(s in runs for runs in queries.values())]
    lines = [f"| query | {' | '.join(systems)} |", "|---|" + "---:|" * len(systems)]
    for name, runs in queries.items():
        lines.append(f"| {name} | {' | '.join(cell(runs[s]) if s in runs else '' for s in systems)} |")
    return "\n".join(lines) + "\n"


def _size(what: str, megabytes: float | None) -> list[str]:
    return [] if megabytes is None else [f"{what}{number(megabytes, 0 if megabytes >= 1 else 2)} MB"]
