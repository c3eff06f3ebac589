"""Which queries are planned, and why others are not: a table.

python -m tests.queries.accept [tpch|tpcds|imdb|nexmark|patterns]
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from joinlib.errors import SpecError
from joinlib.plan import pipeline_of
from tests.queries.corpus import BENCHMARKS, Query, queries
from tests.queries.spec import document


@dataclass(frozen=True)
class Verdict:
    """What the planner says of a query."""

    query: Query
    stages: int  # 0: refused
    why: str = ""


def verdict(query: Query) -> Verdict:
    """Plans it; nothing is read."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            pipeline = pipeline_of(document(query, Path(folder)))
        except SpecError as refused:
            return Verdict(query, 0, str(refused))
    return Verdict(query, len(pipeline.stages))


def table(verdicts: list[Verdict]) -> str:
    """A line for each refusal, and how many of each benchmark pass."""
    lines = [f"{v.query.title:12} {_brief(v.why)}" for v in verdicts if not v.stages]
    for benchmark in BENCHMARKS:
        own = [v for v in verdicts if v.query.benchmark == benchmark]
        if own:
            lines.append(f"{benchmark}: {sum(v.stages > 0 for v in own)} of {len(own)} accepted")
    return "\n".join(lines)


def _brief(why: str) -> str:
    return " ".join(why.split())[:160]


def main() -> None:
    """Prints the table; of a crash its class and words."""
    found = []
    for benchmark in sys.argv[1:] or BENCHMARKS:
        for query in queries(benchmark):
            try:
                found.append(verdict(query))
            except Exception as crash:  # noqa: BLE001 - the table is to be whole
                found.append(Verdict(query, 0, f"CRASH {type(crash).__name__}: {crash}"))
    sys.stdout.write(table(found) + "\n")


if __name__ == "__main__":
    main()
