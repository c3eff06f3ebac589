"""The schema of results in Protobuf: fields of the columns, by numbers that stay."""

import pyarrow as pa
import pytest

from joinlib.errors import InputError, SpecError
from joinlib.spec.protobuf import RowField, RowMessage, message_of, schema_text
from tests.unit.source.protobuf.shapes import files

LAST = 2**29 - 1


def numbers(message: RowMessage) -> dict[str, int]:
    return {f.name: f.number for f in message.fields}


def columns(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


def test_the_text() -> None:
    """One message, with the columns in their order; what is imported is needed."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("to", pa.struct([("zip", pa.string()), ("tags", pa.list_(pa.binary()))])),
        ]
    )
    known = RowMessage(
        "shop.Order", (RowField("to", 4), RowField("old", 2)), ((6, 7), (100, 200)), ("id", "was")
    )
    text = schema_text(schema, message_of(schema, known))
    assert text == (
        'syntax = "proto3";\n'
        "package shop;\n"
        'import "google/protobuf/timestamp.proto";\n'
        "\n"
        "message Order {\n"
        "  reserved 2, 6 to 7, 100 to 200;\n"
        '  reserved "old", "was";\n'
        "  optional int64 id = 201;\n"
        "  optional google.protobuf.Timestamp at = 202;\n"
        "  message to_type {\n"
        "    optional string zip = 1;\n"
        "    repeated bytes tags = 2;\n"
        "  }\n"
        "  optional to_type to = 4;\n"
        "}\n"
    )
    assert files(text).at([0]).full_name == "shop.Order"
    assert schema_text(columns("k"), message_of(columns("k"), RowMessage("t"))) == (
        'syntax = "proto3";\n\nmessage t {\n  optional int64 k = 1;\n}\n'
    )


def test_a_column_keeps_its_number() -> None:
    """Wherever it stands; one that comes back has a new number, since messages may hold another column's by the old."""
    first = message_of(columns("a", "b"), RowMessage("r"))
    assert numbers(first) == {"a": 1, "b": 2}
    less = message_of(columns("b"), first)
    assert (numbers(less), less.reserved, less.names) == ({"b": 2}, ((1, 1),), ("a",))
    more = message_of(columns("c", "b"), less)
    assert (numbers(more), more.reserved, more.names) == ({"c": 3, "b": 2}, ((1, 1),), ("a",))
    again = message_of(columns("a", "b"), more)
    assert (numbers(again), again.reserved, again.names) == ({"a": 4, "b": 2}, ((1, 1), (3, 3)), ("c",))
    assert message_of(columns("a", "b"), again) == again


def test_numbers_within_a_struct_stay() -> None:
    """And so does the name of its type."""
    known = RowMessage("r", (RowField("s", 9, RowMessage("Line", (RowField("b", 5),), ((7, 7),))),))
    schema = pa.schema([("s", pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())])))])
    inner = message_of(schema, known).fields[0].inner
    assert inner == RowMessage("Line", (RowField("a", 8), RowField("b", 5)), ((7, 7),))


def test_numbers_that_protobuf_keeps() -> None:
    """They are passed over; where none is left, the column is named."""
    assert numbers(message_of(columns("a", "b"), RowMessage("r", (RowField("b", 18_999),)))) == {
        "a": 20_000,
        "b": 18_999,
    }
    with pytest.raises(SpecError, match=r"leaves no number above its own for column 'a'; add the field"):
        message_of(columns("a"), RowMessage("r", reserved=((1000, LAST),)))
    full = message_of(columns("a"), RowMessage("r", (RowField("a", 1),), ((1000, LAST),)))
    assert "reserved 1000 to max;" in schema_text(columns("a"), full)


def test_names_that_meet_are_told_apart() -> None:
    """A type's name is no column's; what looks like a part of another name is not taken for it."""
    inner = pa.struct([("s", pa.struct([("s_type", pa.int64())]))])
    schema = pa.schema(
        [("s", inner), ("s_type", pa.int64()), ("google", pa.int64()), ("at", pa.timestamp("us", "UTC"))]
    )
    found = files(schema_text(schema, message_of(schema, RowMessage("s")))).at([0])
    assert [f.name for f in found.fields] == schema.names


def test_names_that_are_one_in_json() -> None:
    """As the compiler would say, but by the column."""
    with pytest.raises(SpecError, match=r"columns 'a_b' and 'aB' would have the same name in the JSON"):
        message_of(columns("a_b", "aB"), RowMessage("r"))
    with pytest.raises(InputError, match="JSON"):
        files("message r { optional int64 a_b = 1; optional int64 aB = 2; }")
    fine = columns("_change_type", "_batch", "batch", "a1", "a_1", "A1")
    assert numbers(message_of(fine.remove(4), RowMessage("r"))).keys() == {*fine.names} - {"a_1"}


@pytest.mark.parametrize(
    ("column", "kind", "why"),
    [
        ("count(1)", pa.int64(), r"no name like that of column 'count\(1\)'; give it one"),
        (
            "d",
            pa.date32(),
            r"no type for column 'd', which is date32.*; leave it out, or CAST it.*CAST\(d AS STRING\)",
        ),
        ("d", pa.decimal128(9, 2), r"'d', which is decimal128\(9, 2\); .*CAST\(d AS STRING\)"),
        ("t", pa.timestamp("us"), r"'t', which is timestamp\[us\]; .*CAST\(t AS TIMESTAMP\)"),
        ("m", pa.map_(pa.string(), pa.string()), r"'m', which is map<string, string>; .*CAST\(m AS STRING\)"),
        ("l", pa.list_(pa.date32()), r"'l', which is list<.*CAST\(l AS ARRAY<STRING>\)"),
        ("l", pa.list_(pa.list_(pa.int64())), r"'l', which is list<.*list<.*CAST\(l AS STRING\)"),
        ("s", pa.struct([("a b", pa.int64())]), "no name like that of column 's.a b'"),
        ("s", pa.struct([("d", pa.date32())]), r"no type for column 's.d'"),
    ],
)
def test_what_protobuf_does_not_have(column: str, kind: pa.DataType, why: str) -> None:
    """Named, with what to do."""
    with pytest.raises(SpecError, match=why):
        message_of(pa.schema([(column, kind)]), RowMessage("r"))
