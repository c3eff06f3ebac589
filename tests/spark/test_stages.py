"""Joins by several keys: stages one after the other in one query; DuckDB answers over the same files."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import joinlib.spark
from tests.spark.test_api import output, run
from tests.spark.trial import Trial

pytestmark = pytest.mark.spark

CUSTOMERS = "c_custkey BIGINT, c_nationkey BIGINT, c_segment STRING"
ORDERS = "o_orderkey BIGINT, o_custkey BIGINT, o_date DATE"
LINES = "l_orderkey BIGINT, l_suppkey BIGINT, l_price DOUBLE, l_flag STRING"
SUPPLIERS = "s_suppkey BIGINT, s_nationkey BIGINT"
NATIONS = "n_nationkey BIGINT, n_regionkey BIGINT, n_name STRING"
REGIONS = "r_regionkey BIGINT, r_name STRING"
Made = list[tuple[Any, ...]]


def made(rows: int, one: Callable[[int], tuple[Any, ...]]) -> Made:
    """In no order that a key would give."""
    return random.Random(rows).sample([one(n) for n in range(rows)], rows)


def tables(trial: Trial, *names: str) -> Trial:
    """The tables of TPC-H that are named, small, in several files each, of which a batch reads one."""
    first = datetime(1994, 11, 1).date()  # noqa: DTZ001 - a day
    known: dict[str, tuple[str, Made]] = {
        "customer": (CUSTOMERS, made(60, lambda n: (n, n % 5, f"S{n % 3}"))),
        "orders": (ORDERS, made(240, lambda n: (n, n * 7 % 60, first + timedelta(days=n % 200)))),
        "lineitem": (LINES, made(900, lambda n: (n % 240, n * n % 30, n / 4, "RAN"[n % 3]))),
        "supplier": (SUPPLIERS, made(30, lambda n: (n, n % 5))),
        "nation": (NATIONS, made(25, lambda n: (n, n % 5, f"N{n}"))),
        "region": (REGIONS, made(5, lambda n: (n, f"R{n}"))),
    }
    for name in names:
        schema, rows = known[name]
        trial.input(name, schema, maxFilesPerBatch=1)
        trial.fill(name, rows, 4 if len(rows) > 30 else 2)
    return trial


Q3 = (
    "SELECT l_orderkey, l_price, o_date FROM customer JOIN orders ON c_custkey = o_custkey"
    " JOIN lineitem ON l_orderkey = o_orderkey WHERE c_segment = 'S1' AND o_date < DATE '1995-03-15'"
)
Q5 = (
    "SELECT n_name, l_price FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey"
    " JOIN supplier ON l_suppkey = s_suppkey AND c_nationkey = s_nationkey JOIN nation ON s_nationkey = n_nationkey"
    " JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'R4' AND o_date >= DATE '1995-01-01'"
)
Q10 = (
    "SELECT c_custkey, n_name, l_price FROM customer JOIN orders ON c_custkey = o_custkey"
    " JOIN lineitem ON l_orderkey = o_orderkey AND l_flag = 'R' JOIN nation ON c_nationkey = n_nationkey"
)


def test_tpch_3_and_a_restart(trial: Trial) -> None:
    """Two keys; more files, another run; a row is counted once though it may pass two operators."""
    tables(trial, "customer", "orders", "lineitem")
    plan = trial.compiled(Q3)
    assert len(plan.pipeline.stages) == 2
    first = trial.run_plan(plan)
    assert trial.output(Q3) == trial.expected(Q3)
    assert len(first.reports) >= 4
    trial.write("customer", "more", [(60, 1, "S1"), (61, 2, "S1")])
    trial.write("orders", "more", [(240, 60, datetime(1995, 1, 1).date())])  # noqa: DTZ001
    trial.write("lineitem", "more", [(240, 1, 5.0, "R"), (None, 1, 6.0, "A")])
    second = trial.run_plan(plan)
    assert trial.output(Q3) == trial.expected(Q3)
    assert second.rows_out == 1
    assert first.rows_out + second.rows_out == trial.output(Q3).total()
    units = plan.pipeline.units
    assert all({r.unit for r in report.receipts} == set(range(2 * units)) for report in first.reports)


@pytest.mark.parametrize("sql", [Q5, Q10], ids=["q5", "q10"])
def test_tpch(trial: Trial, sql: str) -> None:
    """The join cores of queries 5 (a cycle of keys) and 10, in several batches."""
    words = sql.split()
    tables(trial, *(after for word, after in pairwise(words) if word in ("FROM", "JOIN")))
    assert len(trial.run(sql).reports) >= 4
    assert trial.output(sql) == trial.expected(sql) != Counter()


def test_other_partitions(trial: Trial) -> None:
    """The state of both operators moves, and the query goes on."""
    tables(trial, "customer", "orders", "lineitem")
    plan = trial.compiled(Q3, join={"units": 8})
    trial.run_plan(plan)
    trial.write("lineitem", "more", [(n, 1, n / 8, "R") for n in range(240)])
    trial.run_plan(plan, partitions=4)
    assert trial.output(Q3) == trial.expected(Q3)


def test_python_api(trial: Trial) -> None:
    """Streaming DataFrames in, one out; two stages between."""
    tables(trial, "customer", "orders", "lineitem")
    frames = {
        name: trial.spark.readStream.schema(trial.schemas[name])
        .option("maxFilesPerTrigger", 2)
        .parquet(str(trial.folder / name))
        for name in trial.schemas
    }
    run(trial, joinlib.spark.join(trial.session(), Q3, frames, trial.folder / "state", units=4))
    assert output(trial) == trial.expected(Q3) != Counter()
    assert list((trial.folder / "state").glob("*/1/*"))
