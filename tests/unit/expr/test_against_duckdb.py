"""Where Spark and DuckDB agree, so do we: three-valued logic, NaN, integers, text and time over tiny domains."""

import math
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.expr.evaluate import values

SCHEMA = pa.schema(
    [
        ("a", pa.int32()), ("b", pa.int32()), ("x", pa.float64()), ("y", pa.float64()), ("p", pa.bool_()),
        ("q", pa.bool_()), ("s", pa.string()), ("t", pa.timestamp("us")), ("d", pa.date32()),
    ]
)  # fmt: skip
SAME = [
    "a + b * 2 - 1", "-a", "abs(a)", "CASE WHEN b <> 0 THEN a % b END", "a / 2", "x + y", "-x",
    "a = b", "a <> b", "a < b", "a >= b", "x = y", "x <> y", "x < y", "x <= y", "x > y", "x >= y", "a IS DISTINCT FROM b",
    "x IS NOT DISTINCT FROM y", "p = q", "s < 'b'", "a = 1.0", "x = a", "a BETWEEN b AND 2", "a NOT BETWEEN 0 AND b",
    "p AND q", "p OR q", "NOT p", "p AND NULL", "p OR NULL", "a IS NULL OR b IS NOT NULL", "(a > 0) = p",
    "a IN (1, 2)", "a IN (b, NULL)", "a NOT IN (1, NULL)", "x IN (y, 1)", "s IN ('', 'b')",
    "CASE WHEN p THEN a WHEN q THEN b ELSE 7 END", "CASE a WHEN 1 THEN 'x' WHEN b THEN 'y' END", "coalesce(a, b, 9)",
    "nullif(a, b)", "if(p, a, b)", "CAST(a AS DOUBLE) / 4", "CAST(p AS INT)", "CAST(a AS BOOLEAN)", "CAST(a AS STRING)",
    "TRY_CAST(s AS INT)", "CAST(d AS TIMESTAMP_NTZ)", "CAST(t AS DATE)", "greatest(a, b)", "least(x, y)", "least(a, b, 1)",
    "upper(s)", "length(s)", "s || 'z'", "trim(s)", "substring(s, 2)", "substring(s, 1, 1)", "s LIKE 'a%'",
    "s LIKE '_'", "s NOT LIKE '%b%'", "replace(s, 'a', 'xy')", "s IS NULL",
    "year(t)", "month(d)", "day(t)", "hour(t)", "minute(t)", "t + INTERVAL 1 MONTH", "t - INTERVAL 90 MINUTES",
    "t < '2020-02-01'", "d > DATE '2020-01-31'", "d + 1", "t > d", "quarter(t)",
]  # fmt: skip
small = st.none() | st.integers(-1, 2)
floats = st.none() | st.sampled_from([0.0, -0.0, 1.0, -1.5, math.nan, math.inf])
texts = st.none() | st.sampled_from(["", "a", "ab", " b ", "1", "ü"])
START = datetime(2020, 1, 31, 12, 30)  # noqa: DTZ001 - TIMESTAMP_NTZ has no zone
moments = st.none() | st.integers(0, 3).map(lambda n: START + timedelta(hours=7 * n))
days = st.none() | st.integers(0, 2).map(lambda n: date(2020, 1, 30) + timedelta(n))
row = st.tuples(
    small, small, floats, floats, st.none() | st.booleans(), st.none() | st.booleans(), texts, moments, days
)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


@pytest.mark.parametrize("text", SAME)
def test_same_value(text: str, oracle: duckdb.DuckDBPyConnection) -> None:
    """The value of every row is DuckDB's, NaN being itself and -0.0 being 0.0."""

    @settings(max_examples=5, database=None)
    @given(st.lists(row, min_size=1, max_size=8))
    def same(rows: list[tuple[Any, ...]]) -> None:
        table = pa.table([pa.array(c, f.type) for c, f in zip(zip(*rows), SCHEMA)], schema=SCHEMA)
        oracle.register("o", table)
        query = text.replace("TIMESTAMP_NTZ", "TIMESTAMP").replace(" STRING", " VARCHAR")
        expected = [r[0] for r in oracle.execute(f"SELECT {query} FROM o").fetchall()]

        assert list(map(_plain, values(text, table))) == list(map(_plain, expected))

    same()


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value
