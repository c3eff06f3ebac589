"""What a body may not be, and what it may that fastavro does not write: numbers, branches, blocks and decimals at their limits."""

from decimal import Decimal
from typing import Any

import pytest

from joinlib.source.avro.columns import Malformed
from joinlib.source.avro.types import number
from tests.unit.source.avro.test_rows import reader, record

UNION = ["null", "int"]
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 3}
LONGS = {"type": "array", "items": "long"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
LONGEST = b"\xff" * 9 + b"\x01"  # -2^63
WIDER = b"\xff" * 9 + b"\x02"  # of 66 bits
ENDLESS = b"\xff" * 10 + b"\x00"

BAD: list[tuple[Any, bytes]] = [
    ("long", WIDER),
    ("long", ENDLESS),
    (LONGS, number(-1)),  # and no size
    (LONGS, number(-1) + number(9) + number(5) + number(0)),
    (LONGS, number(-1) + number(-1) + number(5) + number(0)),
    (LONGS, LONGEST + number(1) + number(5) + number(0)),
    (LONGS, number(1)),
    (UNION, number(2)),
    (UNION, number(-1) + number(5)),
    (UNION, WIDER),
    ("string", number(-1)),
    ("string", number(3) + b"ab"),
    ("string", WIDER),
    (FIXED, b"ab"),
    ("float", b"abc"),
    ("double", b"abcdefg"),
    ("boolean", b""),
]
UNREAD: list[tuple[Any, bytes]] = [  # what is only passed over may be so
    ("int", number(2**31)),
    ("int", number(-(2**31) - 1)),
    ("boolean", b"\x02"),
    (ENUM, number(2)),
    (ENUM, number(-1)),
    (MONEY, number(17) + b"\x01" + b"\x00" * 16),
    (MONEY, number(17) + b"\x00" + b"\xff" * 16),
    (MONEY, number(17) + b"\xff" + b"\x00" * 16),
]


@pytest.mark.parametrize(("type", "body"), [*BAD, *UNREAD])
def test_what_is_no_value(type: Any, body: bytes) -> None:
    """It alone is malformed, also where messages stand before and behind it."""
    made = reader(record(x=type))
    with pytest.raises(Malformed):
        made.table([body])
    with pytest.raises(Malformed):
        made.table([body, b"\x00" * 9])


@pytest.mark.parametrize(("type", "body"), BAD)
def test_what_is_no_value_and_is_not_wanted(type: Any, body: bytes) -> None:
    """What follows it cannot be found."""
    with pytest.raises(Malformed):
        reader(record(x=type, y="null"), "y INT").table([body])


@pytest.mark.parametrize(
    ("type", "body", "value"),
    [
        ("long", LONGEST, -(2**63)),
        ("long", b"\xfe" + b"\xff" * 8 + b"\x01", 2**63 - 1),
        ("long", b"\x82\x80\x00", 1),  # longer than it need be
        ("int", number(-(2**31)), -(2**31)),
        (LONGS, number(-2) + number(2) + number(5) + number(6) + number(0), [5, 6]),  # a block with its size
        (LONGS, number(1) + number(5) + number(-1) + number(1) + number(6) + number(1) + number(7) + number(0), [5, 6, 7]),
        (UNION, number(0), None),
        (UNION, number(1) + number(5), 5),
        (MONEY, number(0), Decimal(0)),
        (MONEY, number(17) + b"\x00" + b"\x00" * 15 + b"\x05", Decimal(5)),
        (MONEY, number(18) + b"\xff" * 18, Decimal(-1)),
    ],
)  # fmt: skip
def test_values_that_others_write(type: Any, body: bytes, value: Any) -> None:
    """Read, and passed over."""
    schema = record(x=type, y="int")
    assert reader(schema).table([body + number(7)] * 2).to_pylist() == [{"x": value, "y": 7}] * 2
    assert reader(schema, "y INT").table([body + number(7)] * 2).to_pylist() == [{"y": 7}] * 2


@pytest.mark.parametrize(
    ("type", "other", "columns", "body"),
    [
        (
            "string",
            "int",
            "y INT",
            number(-1),
        ),  # it would end before it begins, and its length be the next value
        (ENUM, {**ENUM, "name": "O"}, "x STRING", number(2) + number(0)),
        (UNION, UNION, "x INT", number(2) + number(0)),
    ],
)
def test_what_would_be_a_value_of_another_field(type: Any, other: Any, columns: str, body: bytes) -> None:
    schema = record(x=type, y=other)
    for made in (reader(schema), reader(schema, columns)):
        with pytest.raises(Malformed):
            made.table([body])


def test_branches_of_another_scale() -> None:
    """A column is read in one: digits of the other would stand for other numbers."""
    cents = {"type": "fixed", "name": "C", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 2}
    mills = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 3}
    made = reader(record(x=[cents, mills]), "x DECIMAL(9, 3)")
    assert made.table([number(0) + b"\x00\x05"]).to_pylist() == [{"x": Decimal("0.050")}]
    with pytest.raises(Malformed, match="in a union, of a type that cannot be read"):
        made.table([number(1) + number(1) + b"\x05"])
