"""Where Spark has its own way, its way: values and types taken from Spark 4 in ANSI mode."""

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from joinlib.expr.types import name
from tests.unit.expr.evaluate import expression, values

TABLE = pa.table(
    {
        "a": pa.array([1, -3, None], pa.int32()),
        "b": pa.array([0, 7, 2**63 - 1], pa.int64()),
        "d": pa.array([Decimal("1.25"), Decimal("-7.50"), None], pa.decimal128(6, 2)),
        "e": pa.array([Decimal("2.000"), Decimal("0.300"), Decimal("1.000")], pa.decimal128(8, 3)),
        "x": pa.array([0.5, float("nan"), None]),
        "s": pa.array(["abc", "Zürich%", None]),
        "t": pa.array(
            [datetime(2020, 1, 31, 12, 30, 15, 123456, UTC), None, None], pa.timestamp("us", "UTC")
        ),
        "u": pa.array([{"g": 1}, {"g": None}, None], pa.struct([("g", pa.int32())])),
    }
)
FIRST = [
    ("a / 2", "DOUBLE", 0.5),
    ("a + b", "BIGINT", 1),
    ("d + e", "DECIMAL(9,3)", Decimal("3.250")),
    ("d * e", "DECIMAL(15,5)", Decimal("2.50000")),
    ("d / e", "DECIMAL(18,11)", Decimal("0.62500000000")),
    ("d % e", "DECIMAL(7,3)", Decimal("1.250")),
    ("d * 2", "DECIMAL(8,2)", Decimal("2.50")),
    ("d + a", "DECIMAL(13,2)", Decimal("2.25")),
    ("d + x", "DOUBLE", 1.75),
    ("7 div 2", "BIGINT", 3),
    ("-7 % 3", "INT", -1),
    ("-2147483648", "INT", -(2**31)),
    ("2147483648", "BIGINT", 2**31),
    ("1.5", "DECIMAL(2,1)", Decimal("1.5")),
    ("1e3", "DOUBLE", 1000.0),
    ("CAST(1e10 AS STRING)", "STRING", "1.0E10"),
    ("CAST(d AS STRING)", "STRING", "1.25"),
    ("CAST(t AS STRING)", "STRING", "2020-01-31 12:30:15.123456"),
    ("CAST(-7.5 AS INT)", "INT", -7),
    ("CAST(' 7 ' AS INT)", "INT", 7),
    ("CAST('2020-01-02T03:04:00+02:00' AS TIMESTAMP)", "TIMESTAMP", datetime(2020, 1, 2, 1, 4, tzinfo=UTC)),
    ("TRY_CAST('1.5' AS INT)", "INT", None),
    ("TRY_CAST(x AS DECIMAL(3,2))", "DECIMAL(3,2)", Decimal("0.50")),
    ("round(2.5D)", "DOUBLE", 3.0),
    ("round(2.675D, 2)", "DOUBLE", 2.68),
    ("floor(-2.5)", "DECIMAL(2,0)", Decimal(-3)),
    ("greatest(a, NULL)", "INT", 1),
    ("upper('ß')", "STRING", "SS"),
    ("substring(s, -2, 1)", "STRING", "b"),
    ("'it''s'", "STRING", "it's"),
    ("t + INTERVAL 1 MONTH", "TIMESTAMP", datetime(2020, 2, 29, 12, 30, 15, 123456, UTC)),
    ("DATE '2024-01-31' + INTERVAL 2 DAYS", "DATE", date(2024, 2, 2)),
    ("DATE '2024-01-31' + INTERVAL 2 HOURS", "TIMESTAMP", datetime(2024, 1, 31, 2, tzinfo=UTC)),
    ("date_trunc('week', t)", "TIMESTAMP", datetime(2020, 1, 27, tzinfo=UTC)),
    ("datediff(t, '2020-01-01')", "INT", 30),
    ("extract(HOUR FROM t)", "INT", 12),
    ("extract(SECOND FROM t)", "DECIMAL(8,6)", Decimal("15.123456")),
    ("CAST(0.05 AS FLOAT)", "FLOAT", 0.05000000074505806),
    ("CAST(16777217.0000000000000001 AS FLOAT)", "FLOAT", 16777218.0),
    ("CAST(12345678.9012345678901 AS DOUBLE)", "DOUBLE", 12345678.9012345678901),
    ("CAST(1704164645.123456 AS TIMESTAMP)", "TIMESTAMP", datetime(2024, 1, 2, 3, 4, 5, 123456, UTC)),
    ("TRY_CAST('1_000' AS DECIMAL)", "DECIMAL(10,0)", None),
    ("TRY_CAST('\u00a01' AS INT)", "INT", None),
    ("TRY_CAST('2024-01-01T' AS TIMESTAMP)", "TIMESTAMP", None),
    (
        "CAST('2024-07-01 12:00:00 Europe/Berlin' AS TIMESTAMP)",
        "TIMESTAMP",
        datetime(2024, 7, 1, 10, tzinfo=UTC),
    ),
    ("CAST(CAST('+12345-06-07' AS DATE) AS STRING)", "STRING", "+12345-06-07"),
    ("CAST(CAST('0000-03-01 01:02:03.40' AS TIMESTAMP) AS STRING)", "STRING", "0000-03-01 01:02:03.4"),
    ("CAST(CAST('2300-01-01 00:00:00.000001' AS TIMESTAMP) AS DOUBLE)", "DOUBLE", 10413792000.0),
    ("coalesce(CAST(1 AS DECIMAL(20,6)), CAST(2 AS DECIMAL(38,4)))", "DECIMAL(38,4)", Decimal("1.0000")),
    ("CAST(round(-0.01D, 1) AS STRING)", "STRING", "0.0"),
    ("round(1e28D)", "DOUBLE", 1e28),
    ("if(a = 9, 1 / 0, 2)", "DOUBLE", 2.0),
    ("CASE WHEN a < 9 OR a IS NULL THEN 3 ELSE CAST('x' AS INT) END", "INT", 3),
    ("u.g + 1", "INT", 2),
    ("NULL <=> NULL", "BOOLEAN", True),
]


@pytest.mark.parametrize(("text", "kind", "value"), FIRST, ids=[f[0] for f in FIRST])
def test_value_and_type(text: str, kind: str, value: Any) -> None:
    """The first row's value and the type are Spark's."""
    assert name(expression(text, TABLE.schema).type) == kind
    assert values(text, TABLE)[0] == value


WIDE = "CAST('99999999999999999999999999999999.999999' AS DECIMAL(38,6))"
LESS = "CAST('-99999999999999999999999999999999.999999' AS DECIMAL(38,6))"
EDGES = [
    (WIDE, "DECIMAL(38,6)", Decimal("99999999999999999999999999999999.999999")),
    ("CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(10,2))", "DECIMAL(10,2)", None),
    ("CAST(CAST('-Infinity' AS FLOAT) AS DECIMAL(10,2))", "DECIMAL(10,2)", None),
    (f"hash({WIDE})", "INT", -817514053),
    (f"hash({LESS})", "INT", 1400911110),
    (f"format_number({WIDE}, '0.0')", "STRING", "100000000000000000000000000000000.0"),
    ("array(1, 2) || array(3)", "ARRAY", [1, 2, 3]),
    ("X'61FF' || X'62'", "BINARY", b"a\xffb"),
    ("concat(X'61', X'FF')", "BINARY", b"a\xff"),
    ("concat(X'61', 'b')", "STRING", "ab"),
    ("CAST(CAST('4.9E-324' AS DOUBLE) AS STRING)", "STRING", "4.9E-324"),
    ("CAST(CAST('1.4E-45' AS FLOAT) AS STRING)", "STRING", "1.4E-45"),
    ("CAST(2e-323 AS STRING)", "STRING", "2.0E-323"),
    ("CAST(9e15 AS STRING)", "STRING", "9.0E15"),
    ("CAST(atan2(-0.0D, -0.0D) AS STRING)", "STRING", "0.0"),
    ("CAST(sign(-0.0D) AS STRING)", "STRING", "-0.0"),
    ("CAST(array_distinct(array(-0.0D, 0.0D)) AS STRING)", "STRING", "[0.0]"),
    ("CAST(array_union(array(-0.0D), array(1D)) AS STRING)", "STRING", "[0.0, 1.0]"),
    ("conv('-9223372036854775808', 10, 16)", "STRING", "FFFFFFFFFFFFFFFF"),
    ("conv('-0', 10, -16)", "STRING", "-0"),
    ("conv('-1', 10, 16)", "STRING", "FFFFFFFFFFFFFFFF"),
    ("conv('-15', 10, -16)", "STRING", "-F"),
    ("conv('18446744073709551615', 10, -16)", "STRING", "-1"),
    ("conv('\\t7', 10, 2)", "STRING", "0"),
    ("format_number(-0.05, '##0.0')", "STRING", "-0.0"),
    ("format_number(0D, '#,###.##')", "STRING", "0"),
    ("format_number(0.004D, '#')", "STRING", "0"),
    ("format_number(0.5D, '#.##')", "STRING", "0.5"),
    ("format_number(0.5D, '.00')", "STRING", ".50"),
    ("format_number(CAST('NaN' AS DOUBLE), '0.0')", "STRING", "NaN"),
    ("format_string('%,.1f|%5.1f', -0.0D, CAST('NaN' AS DOUBLE))", "STRING", "-0.0|  NaN"),
    ("format_string('%g %g %g %g', -2.5D, 0D, 0.00001D, 1234567D)", "STRING", "-2.50000 0.00000 1.00000e-05 1.23457e+06"),
    ("format_string('%s', CAST(0.1 AS FLOAT))", "STRING", "0.1"),
    ("get_json_object('null', '$')", "STRING", "null"),
    ("get_json_object('{\"a\": null}', '$.a')", "STRING", None),
    ("try_to_binary('2024-02-30', 'base64')", "BINARY", None),
    ("try_to_binary('ab=', 'base64')", "BINARY", None),
    ("to_binary('ab cd', 'base64')", "BINARY", b"i\xb7\x1d"),
    ("unbase64('ab.cd')", "BINARY", b"i\xb7\x1d"),
    ("unbase64('é')", "BINARY", b""),
    ("try_parse_url('a%b', 'PATH')", "STRING", None),
    ("try_parse_url('12:30:00', 'PATH')", "STRING", None),
    ("try_parse_url('mailto:a@b', 'PATH')", "STRING", None),
    ("try_parse_url('http://h:x/', 'HOST')", "STRING", None),
    ("try_parse_url('http://u:p@h.org:80/p', 'USERINFO')", "STRING", "u:p"),
    ("try_parse_url('http://[::1]/a', 'HOST')", "STRING", "[::1]"),
    ("locate('a', CAST(NULL AS STRING), 0)", "INT", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "value"), EDGES, ids=[f[0] for f in EDGES])
def test_value_at_an_edge(text: str, kind: str, value: Any) -> None:
    """Zeros with a sign, decimals of more digits than Python's own context, bytes, NaN."""
    assert name(expression(text, TABLE.schema).type) == kind
    assert values(text, TABLE)[0] == value


@pytest.mark.parametrize(
    "text",
    ["b + 1", "b * 2", "a / b", "a % b", "d / 0", "CAST(b AS INT)", "CAST(s AS INT)", "a div 0", "x / b"],
)
def test_ansi_errors(text: str) -> None:
    """Overflow, division by zero and malformed text raise, without the row's value in the message."""
    with pytest.raises(SpecError) as e:
        values(text, TABLE)

    assert "9223372036854775807" not in str(e.value)
    assert "abc" not in str(e.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if(b = 0, -1, 14 div b)", [-1, 2, 0]),
        ("b <> 0 AND 14 div b = 2", [False, True, False]),
        ("b = 0 OR 14 div b = 2", [True, True, False]),
        ("CASE WHEN b = 0 THEN NULL WHEN b < 10 THEN 14 div b ELSE 0 END", [None, 2, 0]),
        ("coalesce(14 div nullif(b, 0), 1)", [1, 2, 0]),
        ("if(b < 0, 1 / 0, 2)", [2.0, 2.0, 2.0]),
        ("b < 0 AND 1 / 0 = 1 OR b = 7", [False, True, False]),
    ],
)
def test_what_is_not_asked_cannot_fail(text: str, expected: list[Any]) -> None:
    """A branch is computed only for the rows that take it."""
    assert values(text, TABLE) == expected
    assert values(text, TABLE.slice(0, 0)) == []


def test_expressions_pickle() -> None:
    """Every expression of these tests can travel to a worker."""
    for text, _, _ in FIRST:
        found = expression(text, TABLE.schema)

        assert pickle.loads(pickle.dumps(found)).sql == found.sql


@pytest.mark.slow
def test_long_lists() -> None:
    """A list of thousands is looked up, not nested."""
    numbers = ", ".join(map(str, range(3000)))

    assert values(f"a IN ({numbers})", TABLE) == [True, False, None]
    assert values(f"a NOT IN ({numbers}, NULL)", TABLE) == [False, None, None]
    assert values("x IN (" + ", ".join(f"{n}.5D" for n in range(2000)) + ")", TABLE) == [True, False, None]
