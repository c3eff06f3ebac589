"""Small batches among others, without Spark: one task runs them, on the state that tasks of two partitions have left."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from joinlib.engine import receipt, small
from joinlib.engine.composer import Composer, Offset
from joinlib.inprocess import InProcess
from joinlib.sink.publish import publish
from tests.unit.engine.bench import Bench
from tests.unit.engine.test_stages import PLAIN, SQL, fill

PATHS = {"strategy": "paths"}
INNER = SQL.replace(" AND o.v < i.price", "")
ROWS = 107  # of a batch


@pytest.mark.parametrize("join", [{}, PATHS])
def test_every_second_batch_is_small(tmp_path: Path, join: dict[str, str]) -> None:
    """DuckDB's answer, and a receipt of every unit in each batch."""
    bench = Bench(tmp_path, PLAIN, False, INNER, join=join)
    fill(bench, range(4))
    job = InProcess(bench.plan)
    levels = len(job.plan.pipeline.stages)
    for batch in range(4):
        job.composer = composer(job, ROWS if batch % 2 else ROWS - 1)
        end = job.next()
        assert end is not None
        assert end["small"] is bool(batch % 2)
        told = in_one_task(job, end) if end["small"] else [t.receipt for t in job.join(end, 2)]
        assert Counter(r.unit for r in told) == Counter(range(levels * bench.plan.pipeline.units))
        publish(tmp_path / "out", batch, [name for r in told for name in r.files], "")
        job.done(end)
    assert bench.output() == bench.expected() != Counter()


def test_a_batch_that_closes_is_not_small(tmp_path: Path) -> None:
    """It may have all that is stored to say, however few rows it reads."""
    sql = (
        "SELECT o.id AS id, c.nation AS nation FROM orders o LEFT JOIN customers c ON o.customer = c.customer"
    )
    bench = Bench(tmp_path, {n: PLAIN[n] for n in ("orders", "customers")}, False, sql)
    bench.write("orders", 0, [(1, 1, 1)])
    bench.write("customers", 0, [(1, "n")])
    job = InProcess(bench.plan)
    job.composer = composer(job, ROWS)
    job.composer.bound()
    ends = []
    while (end := job.next()) is not None:
        ends.append((end["small"], end["closed"], len(job.composer.parts(job.offset, end))))
        job.done(end)
    assert ends == [(True, False, 1), (False, True, 1)]


def composer(job: InProcess, rows: int) -> Composer:
    return Composer(replace(job.plan.source, small_rows=rows))


def in_one_task(job: InProcess, end: Offset) -> list[receipt.Receipt]:
    (part,) = job.composer.parts(job.offset, end)
    told = small.run(job.plan.source, job.plan.join, part, job.batch, 0)
    return [receipt.decode(text) for text, _ in receipt.heard(told)]
