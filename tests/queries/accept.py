"""Which queries are planned, and why others are not: a table.

python -m tests.queries.accept [tpch|tpcds|imdb|nexmark|patterns]
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from joinlib.errors import SpecError
from joinlib.plan import Pipeline, pipeline_of
from joinlib.plan.lineage import lineage
from tests.queries.corpus import BENCHMARKS, Query, queries
from tests.queries.spec import document


@dataclass(frozen=True)
class Verdict:
    """What the planner says of a query."""

    query: Query
    stages: int  # 0: refused
    why: str = ""
    untold: frozenset[tuple[str, str]] = frozenset()  # columns of inputs that are read, and in no lineage


def verdict(query: Query) -> Verdict:
    """Plans it; nothing is read."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            pipeline = pipeline_of(document(query, Path(folder)))
        except SpecError as refused:
            return Verdict(query, 0, str(refused))
    return Verdict(query, len(pipeline.stages), untold=untold(pipeline))


def untold(pipeline: Pipeline) -> frozenset[tuple[str, str]]:
    """Columns of inputs that are read for more than their time, and in no lineage; and those of lineage that nobody reads."""
    made = lineage(pipeline, pipeline.results[0])
    told = {(one.source, one.column) for found in (*made.columns.values(), made.rows) for one in found}
    plans = [*pipeline.inputs, *(lookup.table for _, lookup in pipeline.lookups)]
    read = {(plan.source, name) for plan in plans for name in plan.read if not name.startswith("$")}
    return frozenset(read ^ told) - {(plan.source, str(plan.clock)) for plan in plans}


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
