"""Is the result what Spark gives in batch, by the same SQL over the same rows? For what DuckDB says in other words or not at all."""

import datetime as dt
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.laws.changelog import Answer, Changelog, bare
from tests.laws.document import written
from tests.laws.harness import SMALL
from tests.laws.product import Course, Product, own_folder

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int64()),
        ("x", pa.int32()),
        ("s", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
DDL = "id BIGINT, k BIGINT, x INT, s STRING, at TIMESTAMP"
BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
FILES, ROWS = 3, 6
QUERIES = {
    "sessions that touch": (
        "SELECT session_window.start AS a, session_window.end AS b, k, count(*) AS n FROM r"
        " GROUP BY session_window(at, '2 seconds'), k"
    ),
    "sessions of a join": (
        "SELECT session_window.end AS b, count(s.x) AS n FROM r LEFT JOIN s ON r.k = s.k"
        " GROUP BY session_window(r.at, '1 second')"
    ),
    "windows that slide": (
        "SELECT window.start AS a, sum(x) AS t FROM r GROUP BY window(at, '4 seconds', '2 seconds') HAVING count(*) > 1"
    ),
    "groups of a constant": "SELECT count(*) AS n FROM r WHERE k > 100 GROUP BY lower('A')",
    "groups of constants, there": "SELECT concat('a', 'b') AS c, max(x) AS m FROM r GROUP BY 1, pi(), 0.50",
    "a constant beside a key": "SELECT k, count(*) AS n FROM r GROUP BY k, 0.50, upper('b')",
    "a join with groups of a constant": (
        "SELECT s.id, t.m FROM s LEFT JOIN (SELECT lower('A') AS c, count(*) AS m FROM r WHERE k > 100 GROUP BY lower('A')) t"
        " ON s.s = t.c"
    ),
    "a total beside groups": "SELECT k, sum(x) AS t FROM r GROUP BY k UNION ALL SELECT NULL, sum(x) FROM r",
    "NULLs without a type": (
        "SELECT NULL AS z, k, count(*) AS n FROM r GROUP BY k UNION ALL SELECT s, x, count(*) FROM s GROUP BY s, x"
    ),
    "a value beside a FULL JOIN": "SELECT r.id, s.id AS t, (SELECT max(u.x) FROM u) AS m FROM r FULL JOIN s ON r.k < s.k",
    "a value crossed with a FULL JOIN": (
        "SELECT r.id, s.id AS t, v.m FROM r FULL JOIN s ON r.k <> s.k CROSS JOIN (SELECT max(x) AS m FROM u) v"
    ),
    "a FULL JOIN that a value filters": (
        "SELECT r.id, s.id AS t FROM r FULL JOIN s ON r.k = s.k OR r.x = s.x WHERE s.x IS NULL OR s.x > (SELECT avg(u.x) FROM u)"
    ),
    "a subquery in ON of an outer join": (
        "SELECT r.id, q.id AS t FROM r LEFT JOIN s AS q ON r.k = q.k AND q.x IN (SELECT u.x FROM u WHERE u.k = q.k AND u.id >= q.id) AND r.x > 0"
    ),
    "subqueries in ON of some joins": (
        "SELECT r.id, q.id AS t, u.id AS v FROM r JOIN s AS q ON r.k = q.k AND NOT EXISTS (SELECT 1 FROM u WHERE u.s = q.s AND u.k = 1)"
        " LEFT JOIN u ON u.k = r.k AND u.x > (SELECT min(x) FROM s )"
    ),
    "a subquery in ON of a join whose columns nobody reads": (
        "SELECT r.id FROM r LEFT JOIN s ON s.x IN (SELECT x FROM u) AND r.k = 1"
    ),
    "IN of several values in CASE": (
        "SELECT r.id, CASE WHEN (r.k, r.x) IN (SELECT s.k, s.x FROM s) THEN 1"
        " WHEN (r.k, r.x) NOT IN (SELECT u.k, u.x FROM u WHERE u.id > 12) THEN 2 ELSE 0 END AS c FROM r"
    ),
    "IN of several values under OR and NOT": (
        "SELECT r.id FROM r WHERE r.x = 1 AND r.s IS NULL OR (r.k, r.x) NOT IN (SELECT s.k, s.x FROM s WHERE s.id < 4)"
        " AND NOT ((r.k, r.s) IN (SELECT u.k, u.s FROM u WHERE u.id < 4) AND r.x > 0)"
    ),
    "IN of several values of the same group": (
        "SELECT r.id, CASE WHEN (r.k, r.x) NOT IN (SELECT s.k, s.x FROM s WHERE s.s = r.s) THEN 1 ELSE 0 END AS c FROM r"
    ),
    "IN of several values over groups": (
        "SELECT r.id FROM r WHERE r.x = 0 OR (r.k, r.x) NOT IN (SELECT s.k, max(s.x) FROM s GROUP BY s.k)"
    ),
    "lists under NOT and CASE": (
        "SELECT id, CASE WHEN k NOT IN (1, NULL) THEN 1 WHEN k IN (0, NULL) THEN 2 ELSE 0 END AS c, x NOT IN (1, 2) AS d FROM r"
        " WHERE NOT (k IN (1, 2) AND s = 'a')"
    ),
    "NULLs that nothing gives a type": "SELECT NULL AS z, id, CASE WHEN x > 1 THEN NULL END AS y FROM r",
    "aggregates of NULL": (
        "SELECT k, max(NULL) AS a, coalesce(min(NULL), 1) AS b, sum(NULL) AS c, count(NULL) AS d, count(DISTINCT NULL) AS e,"
        " bool_or(NULL) AS f, max_by(NULL, x) AS g, max_by(x, NULL) AS h, any_value(NULL) FILTER (WHERE x > 1) AS i, median(NULL) AS j,"
        " stddev(NULL) AS l FROM r GROUP BY k HAVING max(NULL) IS NULL"
    ),
    "an average of NULL": "SELECT avg(NULL) AS a, bit_and(NULL) AS b, mode(NULL) AS c, corr(NULL, x) AS d FROM r",
    "cubes": (
        "SELECT k, s, grouping(k) AS g, count(DISTINCT x) AS n, sum(x) FILTER (WHERE x > 1) AS t FROM r GROUP BY CUBE (k, s)"
    ),
    "sets of sets": "SELECT k, x FROM r EXCEPT ALL SELECT k, x FROM s INTERSECT ALL SELECT k, x FROM u",
    "aggregates under outer joins": (
        "SELECT r.k, t.n, v.m FROM r FULL JOIN (SELECT k, count(*) AS n FROM s GROUP BY k) t ON r.k = t.k"
        " LEFT JOIN (SELECT k, max(x) AS m FROM u GROUP BY k) v ON v.k = coalesce(r.k, t.k)"
    ),
}


def rows(draw: random.Random, first: int) -> list[tuple[object, ...]]:
    """Few keys, a fifth of all values NULL, times on whole seconds."""

    def maybe(value: object) -> object:
        return None if draw.random() < 0.2 else value

    return [
        (
            first + at,
            maybe(draw.randrange(3)),
            maybe(draw.randrange(4)),
            maybe(draw.choice("ab")),
            maybe(BEGIN + dt.timedelta(seconds=draw.randrange(12))),
        )
        for at in range(ROWS)
    ]


def fill(folder: Path, draw: random.Random) -> None:
    for name in "rsu":
        (folder / name).mkdir()
        for number in range(FILES):
            columns = zip(*rows(draw, number * ROWS), strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            pq.write_table(pa.table(arrays, schema=SCHEMA), folder / name / f"{number}.parquet")


def streamed(sql: str, folder: Path) -> Answer:
    """The sum of what comes out of batches of a file, one of which runs twice."""
    inputs = {
        name: {"schema": DDL, "files": {"path": name, "maxFilesPerBatch": 1, "orderBy": "name"}}
        for name in "rsu"
        if f" {name} " in f"{sql} ".replace(")", " ").replace(",", " ")
    }
    output = {"mode": "changelog", "files": {"path": "out"}}
    spec = {"sql": sql, "inputs": inputs, "output": output, "checkpoint": {"path": "checkpoint"}}
    run, seen = (
        Product(written(spec, folder), SMALL, Course((1, 2), twice=frozenset({1}))),
        Changelog(folder / "out"),
    )
    for batch in run.batches():
        seen.batch(batch, units_apart=False)
    return seen.answer


@pytest.mark.parametrize("name", QUERIES)
def test_as_spark_in_batch(spark: SparkSession, name: str) -> None:
    """Over three batches of each input."""
    draw, batch = random.Random(name), spark.newSession()
    batch.conf.set("spark.sql.shuffle.partitions", "2")  # of 200 most are empty, and each is a task
    for _ in range(2):
        with own_folder() as folder:
            fill(folder, draw)
            for table in "rsu":
                batch.read.parquet(str(folder / table)).createOrReplaceTempView(table)
            theirs = Counter(tuple(map(bare, row)) for row in batch.sql(QUERIES[name]).collect())
            assert streamed(QUERIES[name], folder) == theirs
