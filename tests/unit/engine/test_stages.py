"""Several stages, from source to output, in one process and without Spark; DuckDB answers the same SQL in one piece."""

import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joinlib.engine.exchange import Sender
from tests.unit.engine.bench import TUNING, UNITS, Bench

PLAIN = {
    "orders": "id BIGINT, customer BIGINT, v BIGINT",
    "lines": "id BIGINT, item STRING, n BIGINT",
    "customers": "customer BIGINT, nation STRING",
    "items": "item STRING, price BIGINT",
}
SQL = (
    "SELECT o.id AS id, c.nation AS nation, l.n * i.price AS paid FROM orders o JOIN lines l ON o.id = l.id"
    " JOIN customers c ON o.customer = c.customer JOIN items i ON l.item = i.item AND o.v < i.price"
)


def _some(draw: random.Random, top: int) -> int | None:
    return draw.choice([None, *range(top)])


def fill(bench: Bench, files: range) -> None:
    """A file of each input for each number."""
    for file in files:
        draw = random.Random(file)
        number = partial(_some, draw)
        made: dict[str, list[tuple[Any, ...]]] = {
            "orders": [(draw.randrange(90), number(9), draw.randrange(50)) for _ in range(40)],
            "lines": [(number(90), f"i{draw.randrange(7)}", draw.randrange(5)) for _ in range(60)],
            "customers": [(number(9), f"n{draw.randrange(3)}") for _ in range(3)],
            "items": [(f"i{draw.randrange(7)}", draw.randrange(60)) for _ in range(4)],
        }
        for name in bench.schemas:
            bench.write(name, file, made[name])


@pytest.mark.slow
def test_three_stages_in_several_batches(tmp_path: Path) -> None:
    """Three keys, NULLs among them, a condition over stages: DuckDB's answer, and figures that count each row once."""
    bench = Bench(tmp_path, PLAIN, False, SQL)
    assert len(bench.plan.pipeline.stages) == 3
    fill(bench, range(4))
    bench.run(twice=frozenset({(1, 0), (2, 1), (3, 2)}))
    assert bench.output() == bench.expected() != Counter()
    fill(bench, range(4, 6))
    bench.run()
    assert bench.output() == bench.expected()
    said = [r for batch in bench.receipts for r in batch]
    assert [sum(column) for column in zip(*(r.rows_in for r in said), strict=True)][:1] == [240]
    assert sum(r.rows_out for r in said) == bench.output().total()
    assert all({r.unit for r in batch} == set(range(3 * UNITS)) for batch in bench.receipts)
    assert all(bench.state_rows)
    assert list((tmp_path / "ck" / "state" / "1").glob("*/in*")), "large blocks go as files"


def test_a_task_sends_the_rows_of_its_units_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One frame and one block for each unit behind it, as long as it is no larger; else each unit would send its own."""
    bench, frames = Bench(tmp_path, PLAIN, False, SQL), Counter[int]()
    split, pipeline = Sender.split, bench.plan.pipeline
    reads = {
        stage: plan.number for n in range(2) for stage, plan in pipeline.readers(n)
    }  # of the stage before

    def counting(self: Sender, number: int, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        if reads.get(self.number) == number:
            assert sequence == frames[self.number], "each frame of a task has a number of its own"
            frames[self.number] += 1
        return split(self, number, sequence, rows)

    monkeypatch.setattr(Sender, "split", counting)
    bench.plan = replace(bench.plan, join=replace(bench.plan.join, tuning=replace(TUNING, frame_rows=10**6)))
    fill(bench, range(1))
    bench.run()

    assert frames == {1: 1, 2: 1}
    assert bench.output() == bench.expected() != Counter()


def test_tables_are_looked_up_in_the_last_stage(tmp_path: Path) -> None:
    """Versions reach it through the stage before."""
    bench = Bench(tmp_path, PLAIN, False, SQL, "items")
    fill(bench, range(3))
    bench.run()
    assert [len(s.lookups) for s in bench.plan.pipeline.stages] == [0, 1]
    assert bench.output() == bench.expected() != Counter()


TIMED = {
    "a": "k BIGINT, v BIGINT, t TIMESTAMP",
    "b": "k BIGINT, j BIGINT, t TIMESTAMP",
    "c": "j BIGINT, w BIGINT, t TIMESTAMP",
}
NEAR = "a JOIN b ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL 4 MINUTES AND a.t + INTERVAL 4 MINUTES"
LAST = "c ON b.j = c.j AND c.t BETWEEN a.t - INTERVAL 6 MINUTES AND a.t + INTERVAL 3 MINUTES"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "LEFT ", "FULL "])
def test_time_goes_on_from_stage_to_stage(tmp_path: Path, kind: str) -> None:
    """What is too old is dropped in both stages, nothing that can still match is; the end lets the outer rows out."""
    bench = Bench(tmp_path, TIMED, True, f"SELECT a.v AS v, b.j AS j, c.w AS w FROM {NEAR} {kind}JOIN {LAST}")
    assert len(bench.plan.pipeline.stages) == 2
    start = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
    for file in range(12):
        for name in TIMED:
            draw = random.Random(f"{file}{name}")
            bench.write(
                name,
                file,
                [
                    (
                        draw.randrange(5),
                        draw.randrange(5) if name == "b" else at,
                        start + timedelta(seconds=6 * at + draw.randrange(55)),
                    )
                    for at in range(file * 20, file * 20 + 20)
                ],
            )
    bench.run()
    assert bench.output() == bench.expected() != Counter()
    assert [sum(r.late_total[i] for r in bench.receipts[-1]) for i in range(3)] == [0, 0, 0]
    most = [
        max(sum(r.state_rows for r in batch if r.unit // UNITS == n) for batch in bench.receipts)
        for n in (0, 1)
    ]
    joined = len(bench.db.sql(f"SELECT a.v FROM {NEAR}"))
    assert most[0] < 200 < 480
    assert most[1] < joined / 2
