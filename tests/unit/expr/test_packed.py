"""Packed values: they come back as they were, and sort as Spark sorts what they stand for."""

import datetime as dt
import math
from decimal import Decimal
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from joinlib.expr.packed import packed, unpacked
from joinlib.expr.rows import _column, built

INF, NAN = math.inf, math.nan
VALUES: list[tuple[pa.DataType, list[Any]]] = [  # of each type from the least to the greatest
    (pa.int8(), [None, -128, -1, 0, 1, 127]),
    (pa.int64(), [None, -(2**63), -1, 0, 1, 2**63 - 1]),
    (pa.float64(), [None, -INF, -1e300, -1.5, -5e-324, 0.0, 5e-324, 1.5, 1e300, INF, NAN]),
    (pa.float32(), [None, -INF, -1.5, 0.0, 0.25, INF, NAN]),
    (pa.bool_(), [None, False, True]),
    (pa.string(), [None, "", "\0", "\0\0", "\0a", "\x01", "a", "a\0", "a\0b", "aa", "b", "é", "\U0001f600"]),
    (pa.binary(), [None, b"", b"\0", b"\0\xff", b"\x01", b"\xff", b"\xff\0", b"\xff\xff"]),
    (pa.decimal128(38, 2), [None, Decimal(-(10**35)), Decimal("-0.01"), Decimal(0), Decimal("0.01"), Decimal(10**35 - 1) + Decimal("0.99")]),
    (pa.date32(), [None, dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2026, 1, 1)]),
    (pa.timestamp("us", "UTC"), [None, dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)]),
    (pa.duration("us"), [None, dt.timedelta(days=-3), dt.timedelta(0), dt.timedelta(microseconds=1)]),
    (pa.list_(pa.string()), [None, [], [None], [None, "a"], [""], ["", ""], ["a"], ["a", None], ["a", "b"], ["b"]]),
    (
        pa.struct([("n", pa.int32()), ("s", pa.string())]),
        [None, {"n": None, "s": None}, {"n": None, "s": "z"}, {"n": -1, "s": "a"}, {"n": 1, "s": None}, {"n": 1, "s": ""}, {"n": 1, "s": "a"}],
    ),
    (
        pa.list_(pa.struct([("x", pa.float64()), ("l", pa.list_(pa.int8()))])),
        [None, [], [{"x": None, "l": [1]}], [{"x": 0.5, "l": None}], [{"x": 0.5, "l": []}], [{"x": 0.5, "l": [1]}], [{"x": 0.5, "l": [1]}, None]],
    ),
    (pa.map_(pa.string(), pa.int32()), [None, [], [("a", None)], [("a", 1)], [("a", 1), ("b", 2)], [("b", 0)]]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_order_and_back(kind: pa.DataType, values: list[Any]) -> None:
    plain = _column(pa.array(values, kind))
    data = [packed(value, kind) for value in plain]
    assert all(one < other for one, other in combinations(data, 2))
    back = built([unpacked(one, kind) for one in data], kind)
    assert str(back.to_pylist()) == str(pa.array(values, kind).to_pylist())


def test_zeros_are_one_value() -> None:
    """And so is every NaN."""
    assert packed(-0.0, pa.float64()) == packed(0.0, pa.float64())
    assert packed(-NAN, pa.float64()) == packed(NAN, pa.float64())
