"""A plan never changes the answer: pushed down, melted and bounded, it gives the rows that DuckDB gives for the text."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.errors import SqlError
from joinlib.plan import JoinOptions, Pipeline, SourceInput, build, pipeline
from tests.unit.plan.nested import run, run_all

SCHEMA = pa.schema(
    [("k", pa.int32()), ("j", pa.int32()), ("v", pa.int32()), ("t", pa.timestamp("us", "UTC"))]
)
START = datetime(2024, 1, 1, tzinfo=UTC)
QUERIES = [
    # inner: everything goes down
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND a.v > 0 WHERE b.v > 0",
    "SELECT a.v, b.v AS w FROM a, b WHERE a.k = b.k AND a.v < b.v",
    "SELECT a.v, b.v AS w FROM a JOIN b USING (k, j)",
    "SELECT k, a.v, b.v AS w, c.v AS x FROM a JOIN b USING (k) JOIN c USING (k)",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k AND a.j = c.j",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND a.j = b.k",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k + 1 = b.k - a.v + a.v AND a.k = b.j",
    "SELECT a.v, b.v AS w FROM a JOIN a AS b ON a.k = b.j",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k <=> b.k AND a.j = b.j",
    # outer: ON and WHERE differ
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.v > 0 AND b.v > 0",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE a.v > 0",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE b.v > 0",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE b.v IS NULL",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE b.v IS NOT NULL",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE b.v > 0 OR a.v > 0",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE NOT (b.v > 0)",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE coalesce(b.v, 1) = 1",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.k = b.j AND a.j = b.j",
    "SELECT a.v, b.v AS w FROM a RIGHT JOIN b ON a.k = b.k AND a.v > 0 WHERE b.v > 0",
    "SELECT a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k AND a.v > 0 AND b.v > 0",
    "SELECT a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k WHERE a.v > 0",
    "SELECT a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k WHERE b.v > 0",
    "SELECT a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k WHERE a.v > 0 AND b.v > 0",
    "SELECT a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k WHERE a.v IS NULL OR b.v IS NULL",
    "SELECT k, a.v, b.v AS w FROM a FULL JOIN b USING (k)",
    # trees
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k AND b.v = c.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.k = c.k WHERE c.v > 0",
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND b.v = c.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k AND a.v > 0",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k RIGHT JOIN c ON b.k = c.k AND a.v = c.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k AND b.v = c.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k FULL JOIN c ON b.k = c.k AND a.v = c.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k FULL JOIN c ON a.k = c.k WHERE b.v > 0",
    # semi and anti
    "SELECT a.v FROM a SEMI JOIN b ON a.k = b.k AND a.v > 0 AND b.v > 0",
    "SELECT a.v FROM a ANTI JOIN b ON a.k = b.k AND a.v > 0 AND b.v > 0",
    "SELECT v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND b.v > a.v)",
    "SELECT v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND b.v > a.v) AND a.v > 0",
    "SELECT v FROM a WHERE NOT EXISTS (SELECT 1 FROM a b WHERE a.k = b.k AND b.v > a.v)",
    "SELECT v FROM a WHERE k IN (SELECT j FROM b WHERE b.v > 0)",
    "SELECT v FROM a WHERE (k, j) IN (SELECT k, j FROM b)",
    "SELECT v FROM a WHERE k IN (SELECT k FROM b) AND NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.k)",
    "SELECT v FROM a WHERE k NOT IN (SELECT j FROM b WHERE b.v > 0)",
    "SELECT v FROM a WHERE a.k IS NOT NULL AND k <> ALL (SELECT j FROM b WHERE b.v > 0)",
    "SELECT v FROM a WHERE (k, j) NOT IN (SELECT k, j FROM b)",
    "SELECT v FROM a WHERE k + 1 NOT IN (SELECT j * 2 FROM b)",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE b.k NOT IN (SELECT k FROM c)",
    "SELECT a.v FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.t BETWEEN a.t AND a.t + INTERVAL 1 SECOND)",
    "SELECT a.v, b.v AS w FROM a JOIN b USING (k) WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = b.k AND c.v = a.v)",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE a.k IN (SELECT k FROM c WHERE c.v = b.v)",
    # time bounds
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND b.t BETWEEN a.t AND a.t + INTERVAL 1 SECOND",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND b.t > a.t - INTERVAL 1 SECOND AND a.t > b.t",
    "SELECT a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k AND a.t <= b.t",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE b.t > a.t",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k AND a.t = b.t JOIN c ON a.k = c.k AND c.t < b.t",
    "SELECT a.v, c.v AS x FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND (b.t IS NULL OR c.t >= b.t)",
    "SELECT a.v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND b.t - a.t <= INTERVAL 1 SECOND)",
]

SEVERAL = [  # keys that not all inputs share
    "SELECT a.v, b.v AS w, c.v AS x FROM a, b, c WHERE a.k = b.k AND b.j = c.j",
    "SELECT a.v, b.v AS w, c.v AS x FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND c.v = a.v AND a.v < 2 AND 1 = 1",
    "SELECT k, a.v, c.v AS x FROM a JOIN b USING (k) JOIN c ON b.j = c.j AND a.v + b.v = c.v",
    "SELECT a.v, c.v AS x, d.v AS y FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j JOIN a d ON d.k = a.k AND d.v < c.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.j = b.j AND c.v > a.v AND a.v > 0",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.j = b.j WHERE c.v IS NULL OR c.v = a.j",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k RIGHT JOIN c ON c.j = b.j AND c.v > 0",
    "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k FULL JOIN c ON c.j = b.j AND c.t >= b.t",
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k JOIN c ON c.j = b.j",
    "SELECT a.v, b.v AS w, c.v AS x FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON c.j = b.j",
    "SELECT a.v, b.v AS w, c.v AS x FROM a FULL JOIN b ON a.k = b.k FULL JOIN c ON c.j = b.j",
    "SELECT a.v, c.v AS x FROM a FULL JOIN b ON a.k = b.k JOIN c ON c.k = b.k OR c.k = 1 WHERE c.j = coalesce(a.j, b.j)",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM c WHERE c.j = b.j AND c.v <> a.v)",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.j = b.j AND c.v = a.v)",
    "SELECT a.v FROM a WHERE k IN (SELECT k FROM b) AND j IN (SELECT j FROM c WHERE c.v > 0)",
    "SELECT a.v FROM a WHERE k NOT IN (SELECT k FROM b) AND k IN (SELECT k FROM c)",
    "SELECT v FROM a WHERE k NOT IN (SELECT j FROM b WHERE b.j = 1 OR b.j > 1) AND NOT a.v = ANY (SELECT v FROM b WHERE b.k = a.j)",
    "SELECT a.v FROM a WHERE (k, j) NOT IN (SELECT k, j FROM b) AND j NOT IN (SELECT j FROM c)",
    "SELECT a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k WHERE b.k NOT IN (SELECT k FROM c)",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE (a.k, b.j) NOT IN (SELECT k, v FROM c)",
    "SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k WHERE a.j + b.j NOT IN (SELECT v FROM c WHERE c.v IS NOT NULL)",
    "SELECT a.v, c.v AS x FROM a JOIN b ON a.k = b.k AND b.t - a.t <= INTERVAL 1 SECOND JOIN c ON b.j = c.j AND c.t > a.t",
]

small = st.none() | st.integers(0, 2)
times = st.none() | st.integers(0, 2).map(lambda s: START + timedelta(seconds=s))
Rows = list[tuple[Any, ...]]
rows = st.lists(st.tuples(small, small, small, times), max_size=5)


def _table(values: Rows) -> pa.Table:
    columns = list(zip(*values, strict=True)) if values else [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _rows(
    sql: str, tables: dict[str, pa.Table], oracle: duckdb.DuckDBPyConnection
) -> Counter[tuple[Any, ...]]:
    for name, table in tables.items():
        oracle.register(name, table)
    return Counter(oracle.execute(sql.replace(" <=> ", " IS NOT DISTINCT FROM ")).fetchall())


@pytest.mark.parametrize("sql", QUERIES)
def test_same_answer(sql: str, oracle: duckdb.DuckDBPyConnection) -> None:
    """The stage's nested loop gives DuckDB's rows."""
    stage = build(sql, {n: SourceInput(SCHEMA, "t") for n in "abc"}, JoinOptions(units=4))

    @settings(max_examples=8, database=None)
    @given(rows, rows, rows)
    def same(a: Rows, b: Rows, c: Rows) -> None:
        tables = {"a": _table(a), "b": _table(b), "c": _table(c)}

        assert Counter(run(stage, tables)) == _rows(sql, tables, oracle)

    same()


@pytest.mark.parametrize("sql", SEVERAL)
def test_same_answer_of_several_stages(sql: str, oracle: duckdb.DuckDBPyConnection) -> None:
    """Stage after stage gives DuckDB's rows; one stage is refused."""
    inputs = {n: SourceInput(SCHEMA, "t") for n in "abc"}
    plan = pipeline(sql, inputs, JoinOptions(units=4))

    @settings(max_examples=8, database=None)
    @given(rows, rows, rows)
    def same(a: Rows, b: Rows, c: Rows) -> None:
        tables = {"a": _table(a), "b": _table(b), "c": _table(c)}

        assert Counter(run_all(plan, tables)) == _rows(sql, tables, oracle)

    assert len(plan.stages) > 1
    with pytest.raises(SqlError):
        build(sql, inputs, JoinOptions(units=4))
    same()


@pytest.mark.parametrize("sql", QUERIES)
def test_one_key_is_one_stage(sql: str) -> None:
    """Where one stage will do there is one, the same as ever."""
    inputs = {n: SourceInput(SCHEMA, "t") for n in "abc"}

    assert pipeline(sql, inputs, JoinOptions(units=4)) == Pipeline(
        (build(sql, inputs, JoinOptions(units=4)),)
    )
