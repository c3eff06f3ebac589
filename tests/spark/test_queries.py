"""Does a query give what DuckDB gives, over the same files and by the same SQL? Every kind of join, in many batches."""

import random
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from joinlib.model.tuning import Tuning
from tests.spark.trial import Trial

pytestmark = pytest.mark.spark

SCHEMA = "k BIGINT, s STRING, d DECIMAL(10,2), day DATE, v BIGINT, w DOUBLE, at TIMESTAMP"
START = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
SMALL = Tuning(seal_rows=16, merge_segments=2, max_segments=12, max_runs=2, frame_rows=7, probe_pairs=5)


def made(rows: int, seed: int, null: float = 0.15) -> list[tuple[Any, ...]]:
    """Few keys, NULLs in all of them, times that rise by a minute, give or take ten."""
    draw = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if draw.random() < null else value

    return [
        (
            maybe(draw.randrange(12)),
            maybe(draw.choice(["ape", "bee", "cat's", 'd,o"g', "ä"])),
            maybe(Decimal(draw.randrange(-3, 20)) / 4),
            maybe(date(2026, 1, 1) + timedelta(draw.randrange(15))),
            draw.randrange(50),
            maybe(draw.choice([0.5, 1.25, -2.0])),
            START + timedelta(minutes=at, seconds=draw.randrange(-600, 600)),
        )
        for at in range(rows)
    ]


def three(trial: Trial, *formats: str, rows: int = 90, **options: Any) -> Trial:
    """orders, payments, refunds: three files each, one a batch."""
    for seed, (name, format) in enumerate(zip(("orders", "payments", "refunds"), formats, strict=False)):
        trial.input(name, SCHEMA, format, orderBy="name", maxFilesPerBatch=1, **options)
        trial.fill(name, made(rows, seed), 3)
    return trial


QUERIES = {
    "composite keys, a residual, expressions, aliases": (
        ("parquet", "parquet"),
        "parquet",
        (
            "SELECT o.v AS ov, p.v + 1 AS next, o.s || '-' || p.s AS text, o.w * 2 AS w2, o.at AS at"
            " FROM orders AS o JOIN payments p ON o.k = p.k AND o.s = p.s AND o.v < p.v + 20"
        ),
    ),
    "left, a residual, WHERE above it": (
        ("csv", "csv"),
        "csv",
        (
            "SELECT o.k AS k, o.at AS at, o.v AS ov, p.v AS pv, p.d AS d, p.day AS day"
            " FROM orders o LEFT JOIN payments p ON o.k = p.k AND o.s = p.s AND p.v > 20 WHERE p.v IS NULL OR o.v > p.v"
        ),
    ),
    "right, string keys": (
        ("jsonl", "jsonl"),
        "jsonl",
        "SELECT o.v AS ov, p.s AS s, p.d AS d, p.at AS at, p.w AS w, o.day AS day FROM orders o RIGHT JOIN payments p ON o.s = p.s AND o.k = p.k AND o.v < 25",
    ),
    "full, decimal keys, conditions on one input": (
        ("parquet", "csv"),
        "parquet",
        (
            "SELECT o.d AS od, p.d AS pd, o.v AS ov, p.v AS pv, o.day AS day"
            " FROM orders o FULL JOIN payments p ON o.d = p.d AND o.v < 10 AND p.v > 30"
        ),
    ),
    "exists": (
        ("parquet", "jsonl"),
        "csv",
        (
            "SELECT o.day AS day, o.v AS v FROM orders o"
            " WHERE EXISTS (SELECT 1 FROM payments p WHERE p.day = o.day AND p.v > o.v) AND o.v > 3"
        ),
    ),
    "not exists": (
        ("parquet", "parquet"),
        "jsonl",
        (
            "SELECT o.day AS day, o.v AS v FROM orders o WHERE NOT EXISTS"
            " (SELECT 1 FROM payments p WHERE p.day = o.day AND p.k = o.k AND p.v > o.v)"
        ),
    ),
    "in": (
        ("csv", "parquet"),
        "parquet",
        "SELECT o.s AS s, o.v AS v FROM orders o WHERE o.k IN (SELECT p.k FROM payments p WHERE p.v > 40)",
    ),
    "semi": (
        ("parquet", "parquet"),
        "parquet",
        "SELECT o.v AS v FROM orders o LEFT SEMI JOIN payments p ON o.k = p.k AND o.d = p.d",
    ),
    "anti": (
        ("parquet", "parquet"),
        "parquet",
        "SELECT o.v AS v FROM orders o LEFT ANTI JOIN payments p ON o.k = p.k AND o.d = p.d",
    ),
    "self-join": (
        ("parquet",),
        "parquet",
        "SELECT a.k AS k, a.v AS av, b.v AS bv FROM orders a JOIN orders b ON a.k = b.k AND a.v < b.v WHERE a.v % 2 = 0",
    ),
    "three inputs": (
        ("parquet", "csv", "jsonl"),
        "parquet",
        (
            "SELECT o.v AS ov, p.v AS pv, r.v AS rv FROM orders o JOIN payments p ON o.k = p.k"
            " JOIN refunds r ON r.k = p.k WHERE o.v + p.v > r.v * 2 AND r.s IS NOT NULL"
        ),
    ),
    "inner, then left": (
        ("parquet", "parquet", "parquet"),
        "parquet",
        (
            "SELECT o.v AS ov, p.v AS pv, r.s AS rs FROM orders o JOIN payments p ON o.k = p.k AND o.s = p.s"
            " LEFT JOIN refunds r ON r.k = o.k AND r.s = o.s AND r.v > p.v"
        ),
    ),
    "left, then anti": (
        ("parquet", "parquet", "parquet"),
        "parquet",
        (
            "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o LEFT JOIN payments p ON o.k = p.k AND o.v = p.v"
            " WHERE NOT EXISTS (SELECT 1 FROM refunds r WHERE r.k = o.k AND r.v < o.v - 20)"
        ),
    ),
    "inner, times 15 minutes apart": (
        ("parquet", "parquet"),
        "parquet",
        (
            "SELECT o.k AS k, o.at AS at, p.v AS v FROM orders o JOIN payments p ON o.k = p.k"
            " AND p.at BETWEEN o.at - INTERVAL 5 MINUTES AND o.at + INTERVAL 10 MINUTES AND o.v <> p.v"
        ),
    ),
    "full, times 15 minutes apart": (
        ("parquet", "csv"),
        "csv",
        (
            "SELECT o.v AS ov, p.v AS pv FROM orders o FULL JOIN payments p ON o.k = p.k AND o.s = p.s"
            " AND p.at >= o.at - INTERVAL 5 MINUTES AND p.at < o.at + INTERVAL 10 MINUTES"
        ),
    ),
    "left, times apart, then inner by another key": (
        ("parquet", "parquet", "jsonl"),
        "parquet",
        (
            "SELECT o.v AS ov, p.v AS pv, r.v AS rv FROM orders o LEFT JOIN payments p ON o.k = p.k"
            " AND p.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES"
            " JOIN refunds r ON r.s = o.s AND r.at BETWEEN o.at AND o.at + INTERVAL 5 MINUTES"
        ),
    ),
    "left, then left, times apart": (
        ("parquet", "parquet", "jsonl"),
        "parquet",
        (
            "SELECT o.v AS ov, p.v AS pv, r.v AS rv FROM orders o LEFT JOIN payments p ON o.k = p.k"
            " AND p.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES"
            " LEFT JOIN refunds r ON r.k = o.k AND r.at BETWEEN o.at AND o.at + INTERVAL 20 MINUTES AND r.v > 25"
        ),
    ),
}


@pytest.mark.parametrize("case", QUERIES)
def test_duckdb_agrees(trial: Trial, case: str) -> None:
    """The same SQL over the same files gives the same multiset of rows, however inputs and output are written."""
    formats, written, sql = QUERIES[case]
    three(trial, *formats, eventTime={"column": "at", "delay": "21m"})  # at most 20 minutes out of order
    ran = trial.run(sql, written, SMALL)
    output, expected = trial.output(sql, written), trial.expected(sql)
    assert output == expected
    assert expected, "the query finds nothing: it tests nothing"
    assert len(ran.reports) >= 3
    assert ran.rows_out == expected.total()
    assert sum(ran.late) == 0


def test_retention_is_a_predicate(trial: Trial) -> None:
    """Rows match only if they are no further apart than the retention, whenever the state drops them."""
    three(trial, "parquet", "parquet", eventTime={"column": "at", "delay": "21m"})
    sql = "SELECT o.v AS ov, p.v AS pv FROM orders o LEFT JOIN payments p ON o.k = p.k AND o.v < p.v"
    trial.run(sql, tuning=SMALL, join={"units": 2, "retention": "12m"})
    apart = " AND p.at BETWEEN o.at - INTERVAL 12 MINUTES AND o.at + INTERVAL 12 MINUTES"
    assert trial.output(sql) == trial.expected(sql + apart)
    assert trial.output(sql) != trial.expected(sql)


KEYS = ("k", "s", "d", "day", "k + 1")
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A join of two inputs; columns, keys, conditions as they come."""
    join = draw(st.sampled_from(JOINS))
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True))
    on = [f"o.{key} = p.{key}" for key in keys] + draw(
        st.sampled_from([[], ["o.v < p.v"], ["p.v > 25", "o.v <> p.v"]])
    )
    one = "SEMI" in join or "ANTI" in join
    select = draw(st.sampled_from(["o.v AS a, o.s AS b", "o.v * 2 AS a, COALESCE(o.s, '-') AS b"]))
    select += "" if one else ", p.v AS c, p.day AS d"
    where = draw(
        st.sampled_from(
            ["", " WHERE o.v > 5", " WHERE o.k IS NULL" if one else " WHERE p.v IS NULL OR p.v > 10"]
        )
    )
    return f"SELECT {select} FROM orders o {join} payments p ON {' AND '.join(on)}{where}"


@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    sql=queries(),
    rows=st.sampled_from([5, 40, 60]),
    units=st.sampled_from([1, 2, 8]),
    bits=st.sampled_from([3, 64]),
)
def test_any_query(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, sql: str, rows: int, units: int, bits: int
) -> None:
    """Whatever the join, the data, the units and the collisions of hashes."""
    trial = three(Trial(tmp_path_factory.mktemp("any"), spark), "parquet", "parquet", rows=rows)
    trial.run(sql, tuning=replace(SMALL, hash_bits=bits), join={"units": units})
    assert trial.output(sql) == trial.expected(sql)
