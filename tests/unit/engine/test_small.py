"""Small batches among others, without Spark: one task runs them, on the state that tasks of two partitions have left."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from joinlib.checkpoint import batches
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


@pytest.mark.parametrize("before", ["small", "large", "forgotten"])
def test_a_batch_that_closes_is_small_if_all_were(tmp_path: Path, before: str) -> None:
    """Otherwise it may have much to say, however few rows it reads: all that is stored."""
    sql = (
        "SELECT o.id AS id, c.nation AS nation FROM orders o LEFT JOIN customers c ON o.customer = c.customer"
    )
    bench = Bench(tmp_path, {n: PLAIN[n] for n in ("orders", "customers")}, False, sql)
    bench.write("orders", 0, [(1, 1, 1)])
    bench.write("customers", 0, [(1, "n")])
    job, spark = InProcess(bench.plan), bench.plan.checkpoint / "spark"
    job.composer = composer(job, ROWS if before != "large" else 0)
    job.composer.bound()
    batches.make(spark, synced=False)
    ends = []
    while (end := job.next()) is not None:
        ends.append((end["small"], end["closed"]))
        if not job.batch:
            batches.begin(spark, 0, json.dumps(end), synced=False)
            if before == "forgotten":
                (spark / "offsets" / "0").rename(spark / "offsets" / "7")
        job.done(end)
        job.composer.task = replace(job.composer.task, small_rows=ROWS)
    assert ends == [(before != "large", False), (before == "small", True)]


def composer(job: InProcess, rows: int) -> Composer:
    return Composer(replace(job.plan.source, small_rows=rows))


def in_one_task(job: InProcess, end: Offset) -> list[receipt.Receipt]:
    (part,) = job.composer.parts(job.offset, end)
    told = small.run(job.plan.source, job.plan.join, part, job.batch, 0)
    return [receipt.decode(text) for text, _ in receipt.heard(told)]
