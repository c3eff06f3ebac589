"""Does an expression say what Spark says? Types and values of many, over values at the edges, in one query of Spark."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as st

from joinlib.expr import types as t
from tests.unit.expr.evaluate import expression

pytestmark = pytest.mark.spark

NUMBERS = [
    "1", "-1", "+1", "1_000", "1e3", "1E+2", "1e", "1.", ".5", ".", "-", "", " 7 ", "\\t7\\n", "\\u00a01", "1\\u00a0", "\\u007f1",
    "\\u00001", "\\u20031", "1.5f", "1.5d", "1.5fd", "NaN", "nan", "inf", "-Infinity", "+inf", "Inf", "1,5", "1 000", "2147483648",
    "9223372036854775808", "1e400", "0x1", "--1", "1e38", "12345678901234567890123456789012345678901", "TRUE", " yes ", "y", "n", "2",
]  # fmt: skip
MOMENTS = [
    "2024",
    "2024-1",
    "2024-1-2",
    "2024-01-02T",
    "2024-01-02 ",
    "2024-01-02 3",
    "2024-01-02T03:4",
    "2024-01-02 03:04:05",
    "2024-01-02 03:04:05.",
    "2024-01-02 03:04:05.1234567",
    "2024-01-02 03:04:05Z",
    "2024-01-02 03:04:05 Z",
    "2024-01-02Z",
    "2024-01-02 03:04Z",
    "2024-01-02 03Z",
    "2024-01-02 03:04:05+02:00",
    "2024-01-02 03:04:05+2",
    "2024-01-02 03:04:05+2:30",
    "2024-01-02 03:04:05+0230",
    "2024-01-02 03:04:05+230",
    "2024-01-02 03:04:05+02:3",
    "2024-01-02 03:04:05-18:00",
    "2024-01-02 03:04:05-18:01",
    "2024-01-02 03:04:05+19:00",
    "2024-01-02 03:04:05+01:60",
    "2024-01-02 03:04:05 UTC",
    "2024-01-02 03:04+02:00",
    "2024-01-02 03:04:05+02:00:30",
    "2024-01-02 03:04:05-020030",
    "2024-01-02 03:04:05 CET",
    "2024-01-02 03:04:05UTC+1",
    "2024-01-02 03:04:05 GMT-01:30",
    "2024-01-02 03:04:05 UT",
    "2024-01-02 03:04:05 utc",
    "2024-07-02 03:04:05 Europe/Berlin",
    "2024-01-02 03:04:05Europe/Berlin",
    "2024-01-02 03:04 Europe/Berlin",
    "2024-01-02 03 Europe/Berlin",
    "2024-01-02 Europe/Berlin",
    "2024-01-02 03:04:05 europe/berlin",
    "2024-01-02 03:04:05 Mars/X",
    "2024-03-31 02:30:00 Europe/Berlin",
    "2024-10-27 02:30:00 Europe/Berlin",
    "1800-01-01 00:00:00 Europe/Berlin",
    "2024-01-02 03:04:05 America/New_York",
    "2024-01-02 03:04:05 ../etc",
    "0001-01-01 00:00:00",
    "0000-03-01 00:00:00",
    "-0001-02-03 04:05:06",
    "9999-12-31 23:59:59.999999",
    "10000-01-01 00:00:00",
    "+12345-06-07 08:09:10",
    "294247-01-10 04:00:54",
    "294248-01-01 00:00:00",
    "123456-02-29",
    "2024-02-30",
    "2023-02-29",
    "2024-13-01",
    "2024-00-01",
    "2024-01-02 24:00:00",
    "2024-01-02 23:60:00",
    "2024-01-02 23:59:60",
    "24-01-02",
    "2024-01-02Tx",
    "2024-01-02x",
    "\\u00a02024-01-02",
    " 2024-01-02 ",
    "٢٠٢٤-01-02",
    "2024-01-02 03:04:05.٣",
]  # fmt: skip - without a date Spark takes today's, which no run can repeat; PST and the like are Java's alone
EXPRESSIONS = [
    *(f"TRY_CAST('{n}' AS {kind})" for n in NUMBERS for kind in ("INT", "DECIMAL(38,3)", "DOUBLE", "BOOLEAN")),
    *(f"TRY_CAST('{m}' AS {kind})" for m in MOMENTS for kind in ("TIMESTAMP", "DATE", "TIMESTAMP_NTZ")),
    *(f"CAST(TRY_CAST('{m}' AS {kind}) AS STRING)" for m in MOMENTS if "-02-" in m or "0000" in m for kind in ("TIMESTAMP", "DATE")),
    "EXTRACT(SECOND FROM ts)", "EXTRACT(SECOND FROM ntz)", "second(ts)", "EXTRACT(SECOND FROM TIMESTAMP '1969-12-31 23:59:59.999999')",
    "CAST(m AS FLOAT)", "CAST(m AS DOUBLE)", "CAST(w AS FLOAT)", "CAST(w AS DOUBLE)", "CAST(p AS FLOAT)", "CAST(p AS DOUBLE)",
    "CAST(0.05 AS FLOAT)", "CAST(16777217.0000000000000001 AS FLOAT)", "CAST(0.1234567890123456789 AS DOUBLE)",
    "CAST(p AS TIMESTAMP)", "CAST(CAST(1.9999999 AS DECIMAL(20,7)) AS TIMESTAMP)", "CAST(-1.9999999 AS TIMESTAMP)",
    "CAST(1704164645.123456 AS TIMESTAMP)", "TRY_CAST(x AS TIMESTAMP)", "CAST(ts AS DOUBLE)", "CAST(ts AS FLOAT)", "CAST(ts AS BIGINT)",
    "CAST(ts AS DECIMAL(20,6))", "CAST(TIMESTAMP '2300-01-01 00:00:00.000001' AS DOUBLE)",
    "coalesce(m, w)", "coalesce(w, m)", "coalesce(m, 1)", "CASE WHEN b THEN p ELSE w END", "greatest(p, w)", "m = w", "p < w",
    "round(x, 1)", "round(x)", "round(x, -2)", "round(-0.01D, 1)", "round(-0.0D)", "round(1e28D)", "round(-1.7e308D, 2)",
    "round(CAST(x AS FLOAT), 1)", "round(m, 2)", "round(-2.5)",
    "if(b, 1 / 0, x)", "if(b, CAST('a' AS INT), 1)", "CASE WHEN b THEN 1 % 0 ELSE 2 END", "coalesce(x, 1 / 0)", "if(b, CAST(1e10 AS INT), 7)", "nvl2(x, 1, CAST('x' AS INT))",
]  # fmt: skip
TABLE = pa.table(
    {
        "b": pa.array([False, False, False]),
        "x": pa.array([-0.01, 1e28, 123456.785]),
        "m": pa.array([Decimal("0.050000"), Decimal("-12345678901234.567891"), None], pa.decimal128(20, 6)),
        "w": pa.array([Decimal("0.0001"), Decimal("9" * 34 + ".9999"), Decimal(0)], pa.decimal128(38, 4)),
        "p": pa.array([Decimal("0.29"), Decimal("-99999.99"), Decimal("16777.217")], pa.decimal128(9, 3)),
        "ts": pa.array([datetime(2024, 1, 2, 3, 4, 59, 999999, UTC), datetime(2255, 6, 7, 0, 0, 0, 1, UTC), None], t.TIMESTAMP),
        "ntz": pa.array([-999_999, 253_370_764_800_000_000, None], t.BIGINT).cast(t.TIMESTAMP_NTZ),
    }
)  # fmt: skip
SCHEMA = (
    "b BOOLEAN, x DOUBLE, m DECIMAL(20,6), w DECIMAL(38,4), p DECIMAL(9,3), ts TIMESTAMP, ntz TIMESTAMP_NTZ"
)
COUNTED = {
    st.TimestampType(): f.unix_micros,
    st.DateType(): f.unix_date,
}  # Python knows the years 1 to 9999 only


def test_as_spark(spark: SparkSession) -> None:
    """Every row of every expression: the same type, the same value, or NULL in both."""
    rows = spark.createDataFrame(TABLE.to_pylist(), SCHEMA)
    typed = rows.selectExpr(*(f"{e} AS `{n}`" for n, e in enumerate(EXPRESSIONS)))
    found = typed.select(*(_counted(typed, field) for field in typed.schema)).toArrow()
    different = {}
    for number, (text, field) in enumerate(zip(EXPRESSIONS, typed.schema)):
        kind = t.name(expression(text, TABLE.schema).type)
        if kind != field.dataType.simpleString().upper().replace("TIMESTAMP_LTZ", "TIMESTAMP"):
            different[text] = (kind, field.dataType.simpleString())
            continue
        ours, theirs = _ours(text), [_word(v) for v in found.column(number).to_pylist()]
        if ours != theirs:
            different[text] = (ours, theirs)

    assert different == {}


def _counted(rows: Any, field: st.StructField) -> Any:
    column = rows[f"`{field.name}`"]
    if field.dataType == st.TimestampNTZType():
        column = f.convert_timezone(None, f.lit("UTC"), column).cast("timestamp")
        return f.unix_micros(column).alias(field.name)
    return COUNTED.get(field.dataType, lambda c: c)(column).alias(field.name)


def _ours(text: str) -> list[Any]:
    """Our value for every row, times as numbers."""
    found = expression(text, TABLE.schema)
    column = found.evaluate(lambda name: TABLE[name.removeprefix("o.")], TABLE.num_rows)
    if t.is_timestamp(found.type):
        column = column.cast(pa.int64())
    if found.type == t.DATE:
        column = column.cast(pa.int32())
    return [_word(v) for v in column.to_pylist()]


def _word(value: Any) -> Any:
    """NaN equals itself, and -0.0 is not 0.0."""
    return repr(value) if isinstance(value, float) and (math.isnan(value) or value == 0) else value
