"""GROUP BY, DISTINCT and HAVING over joins, run by Spark: DuckDB's answer, whole and once."""

from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.test_queries import SMALL, three
from tests.spark.trial import Trial

pytestmark = pytest.mark.spark

ON = "FROM orders o JOIN payments p ON o.k = p.k"
NEAR = f"{ON} AND p.at BETWEEN o.at - INTERVAL 8 MINUTES AND o.at + INTERVAL 5 MINUTES"
QUERIES = {
    "every function": (
        "SELECT o.s AS s, o.w AS w, count(*) AS n, count(p.s) AS c, sum(p.v) AS v, sum(p.d) AS d, min(p.day) AS day,"
        f" max(p.w) AS most, avg(p.v) AS mean, min(p.s) AS first {ON} GROUP BY o.s, o.w"
    ),
    "expressions and HAVING": (
        f"SELECT o.v % 7 AS r, 1 + sum(p.v * 2) AS v {ON} AND o.v < p.v GROUP BY o.v % 7 HAVING count(*) > 5"
    ),
    "all rows": f"SELECT count(*) AS n, max(o.at) AS at, sum(o.d) AS d {ON} AND o.v > 1000",
    "two keys": (
        "SELECT o.s AS s, sum(r.v) AS v FROM orders o JOIN payments p ON o.k = p.k JOIN refunds r ON p.v = r.v"
        " AND r.at BETWEEN o.at AND o.at + INTERVAL 30 MINUTES GROUP BY o.s"
    ),
    "a join on comparisons": (
        "SELECT o.s AS s, count(*) AS n, sum(p.v) AS v FROM orders o JOIN payments p ON o.v < p.v AND o.d > p.d"
        " GROUP BY o.s"
    ),
    "a band": (
        "SELECT o.w AS w, count(*) AS n, min(p.v) AS low FROM orders o JOIN payments p ON ABS(o.v - p.v) <= 3"
        " GROUP BY o.w"
    ),
    "distinct": f"SELECT DISTINCT o.k AS k, p.s AS s {ON}",
}


@pytest.mark.parametrize("name", QUERIES)
def test_groups_equal_duckdb(name: str, trial: Trial) -> None:
    """In three batches, closed at the end."""
    three(trial, "parquet", "parquet", "parquet")

    ran = trial.run(QUERIES[name], tuning=SMALL)

    assert trial.output(QUERIES[name]) == trial.expected(QUERIES[name]) != Counter()
    assert ran.rows_out == trial.output(QUERIES[name]).total()


def test_the_changelog_leads_to_the_answer(trial: Trial) -> None:
    """After each batch the sum of all changes is the table of the groups."""
    sql = f"SELECT o.s AS s, count(*) AS n {ON} GROUP BY o.s HAVING count(*) % 5 <> 0"
    three(trial, "parquet", "parquet")

    reports = trial.run(
        sql, output={"mode": "changelog", "files": {"path": "out", "format": "parquet"}}
    ).reports

    table: Counter[tuple[Any, ...]] = Counter()
    for at in range(len(reports)):
        for (s, n, change, batch), times in batch_of(trial, at).items():
            assert batch == at
            table[s, n] += times if change == "insert" else -times
        assert all(times in (0, 1) for times in table.values())
        assert len({s for s, _ in +table}) == (+table).total()
    assert +table == trial.expected(sql) != Counter()


@pytest.mark.parametrize("mode", ["append", "changelog"])
def test_inputs_without_rows_have_a_total(mode: str, trial: Trial) -> None:
    """It comes out once, although nothing is read."""
    for name in ("orders", "payments"):
        trial.input(name, "k BIGINT, v BIGINT")
    sql = f"SELECT count(*) AS n, sum(p.v) AS v {ON}"
    for _ in range(2):
        trial.run(sql, output={"mode": mode, "files": {"path": "out", "format": "parquet"}})
    (found,) = pq.read_table(next(trial.out.glob("batch=*/*.parquet")), partitioning=None).to_pylist()
    assert (found["n"], found["v"]) == (0, None)
    assert len([*trial.out.glob("batch=*/*.parquet")]) == 1


def test_an_hour_comes_out_when_it_has_passed(trial: Trial) -> None:
    """By the watermark, before the inputs are closed; the rest when they are."""
    sql = f"SELECT date_trunc('hour', o.at) AS h, count(*) AS n {NEAR} GROUP BY 1"
    three(trial, "parquet", "parquet", rows=300, eventTime={"column": "at", "delay": "21m"})

    reports = trial.run(sql).reports

    assert trial.output(sql) == trial.expected(sql)
    assert sum(report.rows_out > 0 for report in reports) > 2


def batch_of(trial: Trial, batch: int) -> Counter[tuple[Any, ...]]:
    """What a batch has written."""
    import duckdb

    files = [str(f) for f in (trial.out / f"batch={batch}").glob("*.parquet")]
    if not files:
        return Counter()
    return Counter(duckdb.connect().read_parquet(files, hive_partitioning=False).fetchall())
