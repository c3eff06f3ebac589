"""A table of edge values, o: every expression under `cases/` is evaluated for each of its rows, by Spark and by us."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("i", pa.int32()), ("l", pa.int64()), ("h", pa.int16()), ("x", pa.float64()), ("z", pa.float32()),
        ("d", pa.decimal128(10, 2)), ("s", pa.string()), ("u", pa.string()), ("e", pa.date32()),
        ("t", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us")), ("b", pa.bool_()), ("y", pa.binary()),
        ("a", pa.list_(pa.int32())), ("q", pa.list_(pa.string())), ("v", pa.list_(pa.float64())),
        ("m", pa.map_(pa.string(), pa.int32())), ("r", pa.struct([("f", pa.int32()), ("g", pa.string())])),
        ("w", pa.list_(pa.struct([("f", pa.int32()), ("g", pa.string())]))), ("k", pa.list_(pa.list_(pa.int32()))),
        ("j", pa.string()),
    ]
)  # fmt: skip
NAN, INF = float("nan"), float("inf")


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def _local(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[misc, arg-type]  # noqa: DTZ001


ROWS: list[tuple[Any, ...]] = [
    (1, 2, 3, 0.5, 0.5, Decimal("1.25"), "Spark SQL", "a", date(2024, 2, 29), _at(2024, 2, 29, 13, 5, 9, 123456),
     _local(2024, 2, 29, 13, 5, 9), True, b"Spark", [1, 2, 3], ["a", "b"], [1.5, NAN], {"a": 1, "b": 2},
     {"f": 1, "g": "x"}, [{"f": 1, "g": "x"}, {"f": None, "g": None}], [[1, 2], [3]],
     '{"a": 1, "b": {"c": [1, 2.50, "x"]}, "d": null}'),
    (0, 0, 0, 0.0, 0.0, Decimal("0.00"), "", "", date(1970, 1, 1), _at(1970, 1, 1), _local(1970, 1, 1), False, b"", [], [],
     [], {}, {"f": 0, "g": ""}, [], [], "{}"),
    (-1, -1, -1, -2.5, -2.5, Decimal("-2.50"), " a,b,,c ", ",", date(1969, 12, 31), _at(1969, 12, 31, 23, 59, 59, 999999),
     _local(1969, 12, 31, 23, 59, 59), True, b"\xff\x00", [3, None, 1, 3], [None, "", "z"], [0.0, -0.0, None],
     {"": -1, "z": None}, {"f": None, "g": None}, [None], [None, [1]], "[1, 2, 3]"),
    (2**31 - 1, 2**63 - 1, 2**15 - 1, INF, INF, Decimal("99999999.99"), "Zürich ist schön", "ü", date(9999, 12, 31),
     _at(9999, 12, 31, 23, 59, 59), _local(9999, 12, 31), None, "ü".encode(), [2**31 - 1], ["Zürich"], [INF, -INF],
     {"ü": 2**31 - 1}, {"f": 2**31 - 1, "g": "ü"}, [{"f": 5, "g": "ü"}], [[]], '"text"'),
    (-(2**31), -(2**63), -(2**15), NAN, NAN, Decimal("-0.01"), "👍 ab👍", "👍", date(1582, 10, 4),
     _at(1582, 10, 4, 12), _local(1582, 10, 15), False, bytes(range(8)), [-1, -1], ["👍", "👍"], [NAN, NAN], {"a": -1},
     {"f": -1, "g": "👍"}, [{"f": -1, "g": "a"}, {"f": -1, "g": "b"}], [[1], [1]], '{"a": [{"b": 1}, {"b": 2}]}'),
    (None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None,
     None),
    (7, 10**12, 100, 1e300, 1e30, Decimal("123.45"), "http://user:pw@host.org:80/p/a?q=1&r=b%20c#frag", "host",
     date(2023, 3, 26), _at(2023, 3, 26, 1, 30), _local(2023, 3, 26, 2, 30), True, b"abc", [5, 4, 9, None], ["x", None],
     [3.25, -1.0], {"q": 1, "r": 5}, {"f": 7, "g": None}, [{"f": 2, "g": "b"}, {"f": 1, "g": "c"}],
     [[9, None], [8]], "not json"),
    (42, -5, 12, -1e-5, -1e-5, Decimal("10.00"), "2024-01-02 03:04:05", "%a_", date(1, 1, 1), _at(1, 1, 1),
     _local(2100, 2, 28, 1, 2, 3), False, b"a,b", [1], ["b", "a", "c", "b"], [2.0], {"k": 0}, {"f": 42, "g": "y"},
     [{"f": None, "g": "z"}], [[3], None], '{"b": "1", "a": "x", "c": true, "t": "2024-01-02T03:04:05Z"}'),
    (12, 1704164645, -7, 12345.678, 12345.678, Decimal("-99.99"), "aaa\nbbb'\"\\", "b+", date(2021, 1, 3),
     _at(2021, 1, 3, 0, 0, 0, 1), _local(2000, 12, 31, 23, 59, 59), None, b"{}", [0, 0, 0], ["1", "2"], [1.0, 2.0, 3.0],
     {"x": 10, "y": 20, "z": 30}, {"f": 3, "g": "3"}, [{"f": 1, "g": "x"}, {"f": 1, "g": "x"}], [[1, 2, 3]],
     '{"a": 1.0, "b": 1e3, "c": 12345678901234567890, "é": "\\u00e9\\n"}'),
]  # fmt: skip


def table(rows: list[tuple[Any, ...]] = ROWS) -> pa.Table:
    """Return the table."""
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows), SCHEMA)], schema=SCHEMA
    )
