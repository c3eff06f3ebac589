"""The queries of the papers on the data they are made for: fed in random order, in several batches; DuckDB answers."""

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp, parse_one

from joinlib.expr.types import name as ddl
from tests.spark.tpc.data import tables
from tests.spark.tpc.queries import TPCDS, TPCH
from tests.spark.trial import Trial

pytestmark = pytest.mark.spark

SCALE = 0.01  # 60 000 line items
FILES = 3  # of each table, of which a batch reads one
RETURNS = ("customer", "catalog_returns", "store_returns", "web_returns")


def feed(trial: Trial, folder: Path, sql: str) -> None:
    """The tables that the query names, each in an order of its own."""
    names = {table.name for table in parse_one(sql, dialect="spark").find_all(exp.Table)}
    for seed, name in enumerate(sorted(names)):
        rows = pq.read_table(folder / f"{name}.parquet")
        order = random.Random(seed).sample(range(len(rows)), len(rows))
        _write(trial, name, rows.take(order))


def _write(trial: Trial, name: str, rows: pa.Table) -> None:
    trial.input(name, ", ".join(f"{f.name} {ddl(f.type)}" for f in rows.schema), maxFilesPerBatch=1)
    size = -(-len(rows) // FILES)
    for at in range(FILES):
        pq.write_table(rows.slice(at * size, size), trial.folder / name / f"{at}.parquet")


@pytest.mark.parametrize("query", TPCH)
def test_tpch(trial: Trial, query: str) -> None:
    """Every block of the eleven queries, with all that it asks of the rows."""
    feed(trial, tables("h", SCALE), TPCH[query])
    ran = trial.run_plan(trial.compiled(TPCH[query]), partitions=1)  # up to eight operators in a row

    assert len(ran.reports) >= FILES
    assert trial.output(TPCH[query]) == trial.expected(TPCH[query]) != Counter()


def test_tpcds(trial: Trial) -> None:
    """The query of both papers: four inputs, one key, all columns; one stage."""
    feed(trial, tables("ds", SCALE, *RETURNS), TPCDS)
    plan = trial.compiled(TPCDS)
    assert len(plan.pipeline.stages) == 1
    ran = trial.run_plan(plan)

    assert len(ran.reports) >= FILES
    assert trial.output(TPCDS) == trial.expected(TPCDS)
    assert ran.rows_out > 10_000
