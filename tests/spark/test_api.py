"""The Python API: streaming DataFrames in, a streaming DataFrame out; DuckDB over the same files is the oracle."""

import os
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame

import joinlib.spark
from joinlib.errors import SpecError, SqlError
from tests.spark.trial import Rows, Trial, plain, rows_of

pytestmark = pytest.mark.spark

SCHEMA = "k BIGINT, s STRING, v BIGINT, at TIMESTAMP"
BOUND = " AND p.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES"


def made(start: int, stop: int) -> list[tuple[Any, ...]]:
    """Rising by a minute; every seventh key NULL."""
    base = datetime(2026, 1, 1)  # noqa: DTZ001 - as in most files, no zone
    return [
        (None if n % 7 == 0 else n % 5, f"s{n % 3}", n, base + timedelta(minutes=n))
        for n in range(start, stop)
    ]


def stream(trial: Trial, name: str, watermark: str | None = "1 minute") -> DataFrame:
    spark = trial.spark
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(trial.folder / name))
    return df.withWatermark("at", watermark) if watermark else df


def run(trial: Trial, result: DataFrame) -> None:
    """What is there, into files, by Spark's own sink."""
    query = (
        result.writeStream.format("parquet")
        .option("path", str(trial.out))
        .option("checkpointLocation", str(trial.folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(200)
    finally:
        query.stop()


def output(trial: Trial) -> Rows:
    files = [str(f) for f in trial.out.glob("*.parquet")]
    return (
        rows_of(duckdb.sql(f"SELECT * FROM read_parquet({files!r})").to_arrow_table()) if files else Counter()
    )


def inputs(trial: Trial) -> Trial:
    for name in ("orders", "payments"):
        trial.input(name, SCHEMA)
        for file in range(2):
            path = trial.write(name, f"{file}", made(file * 20, file * 20 + 20))
            os.utime(
                path, (1e9 + file, 1e9 + file)
            )  # Spark reads in the order of modification, to the millisecond
    return trial


def test_inner_join_of_streams_with_restart(trial: Trial) -> None:
    """Composite keys, an expression, a retention: equal to DuckDB, also over a restart with new files."""
    inputs(trial)
    sql = "SELECT o.v AS ov, p.v * 2 AS pv, o.at AS at FROM orders o JOIN payments p ON o.k = p.k AND o.s = p.s AND o.v <> p.v"
    apart = " AND p.at BETWEEN o.at - INTERVAL 30 MINUTES AND o.at + INTERVAL 30 MINUTES"
    for round in range(2):
        if round:
            trial.write("payments", "2", made(40, 60))
            trial.write("orders", "2", made(45, 65))
        frames = {n: stream(trial, n) for n in ("orders", "payments")}
        result = joinlib.spark.join(
            trial.session(), sql, frames, trial.folder / "state", units=4, retention_us=30 * 60 * 10**6
        )
        assert result.columns == ["ov", "pv", "at"]
        run(trial, result)
        assert output(trial) == trial.expected(sql + apart)
    assert list((trial.folder / "state").glob("*/0/*"))


def test_outer_rows_come_out_by_the_watermark(trial: Trial) -> None:
    """Rows without a partner come out once none can come any more; those that may still find one do not."""
    inputs(trial)
    sql = (
        "SELECT o.v AS ov, p.v AS pv FROM orders o LEFT JOIN payments p ON o.k = p.k AND p.v % 4 = 0" + BOUND
    )
    result = joinlib.spark.join(
        trial.session(),
        sql,
        {n: stream(trial, n) for n in ("orders", "payments")},
        trial.folder / "state",
        units=2,
    )
    run(trial, result)
    expected, out = trial.expected(sql), output(trial)
    # The watermark is at 38 minutes: orders up to minute 27 are done. What has no key needs nobody to wait for.
    assert Counter(r for r in out.elements() if r[0] <= 27) == Counter(
        r for r in expected.elements() if r[0] <= 27
    )
    assert all(row[1] is not None or row[0] % 7 == 0 for row in out if row[0] > 27)
    assert not out - expected


def test_the_join_options_of_the_spec(trial: Trial) -> None:
    """Join-biclique with and without a key, as the planner has it; what a DataFrame cannot have is refused with the reason."""
    inputs(trial)
    frames = {n: stream(trial, n) for n in ("orders", "payments")}
    sql = "SELECT o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON "
    state = trial.folder / "state"
    for options, message in (
        ({"strategy": "nested"}, "must be one of auto"),
        ({"strategy": "biclique", "subgroups": 3}, "power of two"),
        ({"subgroups": 2}, "is for join.strategy biclique"),
        ({"window_rows": 0}, "must be positive"),
        ({"window_rows": 9}, "orders has none"),
    ):
        with pytest.raises(SpecError, match=message):
            joinlib.spark.join(trial.spark, sql + "o.k = p.k", frames, state, **options)  # type: ignore[arg-type]

    on = "o.k = p.k AND o.v < p.v"
    spark = trial.session()
    frames = {n: stream(trial, n) for n in ("orders", "payments")}
    run(
        trial,
        joinlib.spark.join(spark, sql + on, frames, state, units=4, strategy="biclique", subgroups=2),
    )
    assert output(trial) == trial.expected(sql + on)


def test_a_query_is_refused_before_anything_runs(trial: Trial) -> None:
    """An unknown column is named with the nearest one."""
    inputs(trial)
    with pytest.raises(SqlError) as wrong:
        joinlib.spark.join(
            trial.spark,
            "SELECT o.vv AS v FROM orders o JOIN payments p ON o.k = p.k",
            {n: stream(trial, n, None) for n in ("orders", "payments")},
            trial.folder / "state",
        )
    assert plain(wrong.value).startswith("line 1, column 8: o has no column vv")
    assert "v" in str(wrong.value).split(";")[1]


def test_a_static_dataframe_is_a_table(trial: Trial) -> None:
    """Looked up after a join of streams; the query is stopped and goes on with a newer table."""
    inputs(trial)
    sql = (
        "SELECT o.v AS ov, p.v AS pv, n.name AS name FROM orders o JOIN payments p ON o.k = p.k AND o.v = p.v"
        " LEFT JOIN names n ON n.k = o.k AND n.s = o.s"
    )
    schema = "k BIGINT, s STRING, name STRING"
    trial.schemas["names"] = schema
    spark, names = trial.session(), [(k, f"s{k % 2}", f"n{k}") for k in range(4)] * 2
    frames = {n: stream(trial, n) for n in ("orders", "payments")}
    frames["names"] = spark.createDataFrame(names, schema)
    run(trial, joinlib.spark.join(spark, sql, frames, trial.folder / "state", units=2))
    before = trial.expected(sql, names=names)
    assert output(trial) == before
    for name in ("orders", "payments"):
        trial.write(name, "2", made(40, 60))
    newer = [(k, s, f"newer {name}") for k, s, name in names]
    frames["names"] = spark.createDataFrame(newer, schema)
    run(trial, joinlib.spark.join(spark, sql, frames, trial.folder / "state", units=2))
    after = trial.expected(sql, names=newer)
    assert output(trial) == before + Counter(r for r in after.elements() if r[0] >= 40)


def test_groups_change_batch_by_batch(trial: Trial) -> None:
    """The changelog of a streaming count, whose last row of each group is DuckDB's answer."""
    inputs(trial)
    sql = "SELECT o.s AS s, count(*) AS n FROM orders o JOIN payments p ON o.k = p.k GROUP BY o.s"
    spark = trial.session()
    frames = {n: stream(trial, n, None) for n in ("orders", "payments")}
    run(trial, joinlib.spark.join(spark, sql, frames, trial.folder / "state", units=2, mode="changelog"))

    changes = output(trial)

    total: Counter[Any] = Counter()
    for (s, n, change), times in changes.items():
        total[s, n] += times if change == "insert" else -times
    assert {row: n for row, n in total.items() if n} == trial.expected(sql)
    assert {change for *_, change in changes} == {"insert", "delete"}


def test_dataframes_that_change(trial: Trial) -> None:
    """Rows that a column deletes, and the last row of a key: what the changes add up to is DuckDB's answer."""
    orders = [(n % 5, n, "insert") for n in range(40)]
    orders += [(n % 5, n, "delete") for n in range(0, 40, 3)] + [
        (1, 1, "update_preimage"),
        (2, 1, "update_postimage"),
    ]
    names = [(n % 5, f"n{n}", 1) for n in range(12)] + [(3, None, -1)]
    for name, schema, rows in (
        ("orders", "k BIGINT, v BIGINT, op STRING", orders),
        ("names", "k BIGINT, name STRING, op BIGINT", names),
    ):
        trial.input(name, schema)
        for at in range(2):  # one file a batch; what is deleted was there before
            part = rows[at * 40 : at * 40 + 40] if name == "orders" else rows[at * 10 : at * 10 + 10]
            os.utime(trial.write(name, f"{at}", part), (1e9 + at, 1e9 + at))
    spark = trial.session()
    frames = {
        name: spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(trial.folder / name))
        for name, schema in trial.schemas.items()
    }
    result = joinlib.spark.join(
        spark,
        "SELECT o.v AS v, n.name AS name FROM orders o LEFT JOIN names n ON o.k = n.k",
        frames,
        trial.folder / "state",
        units=2,
        mode="changelog",
        changes={"orders": "op", "names": "op"},
        upserts={"names": ("k",)},
    )
    assert result.columns == ["v", "name", "_change_type"]
    run(trial, result)

    total: Counter[Any] = Counter()
    for (v, name, what), count in output(trial).items():
        total[v, name] += count if what in ("insert", "update_postimage") else -count
    kept = Counter((k, v) for k, v, op in orders if op in ("insert", "update_postimage"))
    kept -= Counter((k, v) for k, v, op in orders if op not in ("insert", "update_postimage"))
    last = {k: name for k, name, _ in names}
    assert {row: n for row, n in total.items() if n} == Counter((v, last[k]) for k, v in kept.elements())


def test_dataframes_that_cannot_change_so(trial: Trial) -> None:
    """Named by their option, with the mend."""
    inputs(trial)
    frames = {n: stream(trial, n) for n in ("orders", "payments")}
    frames["still"] = trial.spark.createDataFrame([(1, "x")], "k BIGINT, op STRING")
    sql = "SELECT o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"
    for options, message in (
        ({"changes": {"order": "s"}}, r"changes: no input 'order'; did you mean 'orders'\?"),
        ({"changes": {"orders": "op"}}, r"changes\['orders'\]: no column 'op' in the schema"),
        (
            {"changes": {"orders": "at"}},
            r"changes\['orders'\]: column 'at' is timestamp.*declare it as STRING",
        ),
        ({"upserts": {"orders": ()}}, r"upserts\['orders'\]: names no column"),
        (
            {"upserts": {"orders": ("s",)}, "changes": {"orders": "s"}},
            r"upserts\['orders'\]: column 's' holds the op",
        ),
        (
            {"upserts": {"still": ("k",)}},
            r"upserts\['still'\]: is for streams, and this DataFrame is not streaming",
        ),
        ({"upserts": {"orders": ("k",)}}, "rows of orders may be deleted"),
    ):
        with pytest.raises(SpecError, match=message):
            joinlib.spark.join(trial.spark, sql, frames, trial.folder / "state", **options)  # type: ignore[arg-type]
