"""Joins by paths through Spark: DuckDB answers over the same files after every batch."""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.laws.changelog import Changelog
from tests.spark.test_stages import Q5, tables
from tests.spark.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PATHS: dict[str, Any] = {"join": {"units": 4, "strategy": "paths"}}
BASE = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
SCHEMAS = {
    "customers": "c BIGINT, name STRING, op STRING",
    "orders": "o BIGINT, c BIGINT, t TIMESTAMP, op STRING",
    "lines": "o BIGINT, n BIGINT, t TIMESTAMP, op STRING",
}
SQL = (
    "SELECT customers.name AS name, orders.o AS o, lines.n AS n FROM customers JOIN orders ON customers.c = orders.c"
    " JOIN lines ON orders.o = lines.o AND lines.t >= orders.t AND lines.n + customers.c <> 7"
)
FILES = 5


def drawn(draw: random.Random, name: str) -> tuple[Any, ...]:
    """A row of an input, without what happens to it."""
    c, o = (draw.choice([None, *range(top)]) for top in (5, 12))
    at = BASE + timedelta(minutes=draw.randrange(30))
    return {
        "customers": (c, f"n{draw.randrange(9)}"),
        "orders": (o, c, at),
        "lines": (o, draw.randrange(9), at),
    }[name]


def fill(trial: Trial, deletions: float) -> dict[str, list[list[tuple[Any, ...]]]]:
    """A file of each input a batch, of rows that come and, so often, one that goes. Returns what each file says."""
    said: dict[str, list[list[tuple[Any, ...]]]] = {}
    for name, schema in SCHEMAS.items():
        draw, there = random.Random(name), list[tuple[Any, ...]]()
        trial.input(name, schema, maxFilesPerBatch=1, orderBy="name", changes={"op": "op"})
        for file in range(FILES):
            rows = []
            for _ in range(30):
                if there and draw.random() < deletions:
                    rows.append((*there.pop(draw.randrange(len(there))), "delete"))
                else:
                    there.append(drawn(draw, name))
                    rows.append((*there[-1], "insert"))
            trial.write(name, str(file), rows)
            said.setdefault(name, []).append(rows)
    return said


def left(files: Iterable[list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """The rows that are there after these files."""
    found: Counter[tuple[Any, ...]] = Counter()
    for rows in files:
        for row in rows:
            found[row[:-1]] += 1 if row[-1] == "insert" else -1
    return [(*row, "") for row in found.elements()]


def test_rows_come_and_go_in_all_inputs(trial: Trial) -> None:
    """Two keys and a condition over three inputs: what was said so far sums up to the answer after every batch; with a restart."""
    said = fill(trial, deletions=0.4)
    plan = trial.compiled(SQL, output={"mode": "changelog", "files": {"path": "out"}}, **PATHS)
    assert [type(stage).__name__ for stage in plan.pipeline.stages] == ["PathStage", "HopStage"]
    more = [path.rename(path.with_name(f".{path.name}")) for path in trial.folder.glob("*/[34].parquet")]
    assert len(more) == 6
    first = trial.run_plan(plan)
    for path in more:
        path.rename(path.with_name(path.name[1:]))
    second = trial.run_plan(plan)

    log = Changelog(trial.out)
    batches = [report.batch for report in (*first.reports, *second.reports)]
    for number in batches[:FILES]:
        if (trial.out / f"batch={number}").exists():
            log.batch(number, units_apart=False)
        so_far = {name: left(files[: number + 1]) for name, files in said.items()}
        assert log.answer == trial.expected(SQL, **so_far)
    assert log.answer


def test_six_inputs_and_a_cycle(trial: Trial) -> None:
    """TPC-H's fifth query, with a restart that brings more files."""
    tables(trial, "customer", "orders", "lineitem", "supplier", "nation", "region")
    plan = trial.compiled(Q5, **PATHS)
    stored, *hops = plan.pipeline.stages
    assert type(stored).__name__ == "PathStage" and len(hops) >= 2
    first = trial.run_plan(plan)
    assert trial.output(Q5) == trial.expected(Q5) != Counter()
    trial.write("customer", "more", [(60, 1, "S1"), (61, 2, "S1")])
    trial.write("orders", "more", [(240, 60, datetime(1995, 1, 1).date())])  # noqa: DTZ001
    trial.write("lineitem", "more", [(240, 1, 5.0, "R"), (None, 1, 6.0, "A")])
    second = trial.run_plan(plan)

    assert trial.output(Q5) == trial.expected(Q5)
    assert first.rows_out + second.rows_out == trial.output(Q5).total()
    inputs = [i.source for i in plan.pipeline.inputs]
    assert len(inputs) == len(set(inputs)) == 6
    read = Counter[str]()
    for report in (*first.reports, *second.reports):
        for receipt in report.receipts:
            read.update(dict(zip(inputs, receipt.rows_in, strict=True)))
    assert read["customer"] == 62 and read["lineitem"] == 901, "the row without a key matches nothing"
