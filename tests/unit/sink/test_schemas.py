"""What is taken from the schema that a subject has already."""

import pyarrow as pa

from joinlib.sink.kafka.schemas import known_message
from joinlib.spec.protobuf import RowField, RowMessage, message_of, schema_text
from tests.unit.source.protobuf.shapes import files


def test_numbers_of_a_schema() -> None:
    """Those of its first message, and of the messages in it that are columns; a type may hold itself."""
    found = files(
        """
        message Order {
          reserved 3, 5 to 6; reserved "old";
          sint64 id = 9; repeated Line lines = 2; Order before = 4; oneof one { string a = 7; int32 b = 8; }
        }
        message Line { string item = 4; Line next = 1; reserved 10 to max; }
        message Other { int64 id = 1; }
        """
    ).at([0])
    lines = ("lines", pa.list_(pa.struct([("item", pa.string())])))
    known = known_message(found, [*pa.schema([("id", pa.int64()), lines])])
    line = RowMessage("Line", (RowField("item", 4), RowField("next", 1)), ((10, 2**29 - 1),))
    fields = (
        RowField("lines", 2, line),
        RowField("before", 4),
        RowField("a", 7),
        RowField("b", 8),
        RowField("id", 9),
    )
    assert {*known.fields} == {*fields}
    assert known._replace(fields=()) == RowMessage("Order", (), ((3, 3), (5, 6)), ("old",))


def test_a_schema_is_found_again() -> None:
    """What was registered is what is known next time: the same columns have the same text."""
    schema = pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.bool_())])), ("b", pa.string())])
    made = message_of(schema.remove(0), message_of(schema, RowMessage("shop.Row")))
    text = schema_text(schema.remove(0), made)
    known = known_message(files(text).at([0]), [*schema.remove(0)])._replace(name="shop.Row")
    assert schema_text(schema.remove(0), message_of(schema.remove(0), known)) == text


def test_extensions_are_no_free_numbers() -> None:
    found = files('syntax = "proto2"; message m { optional int64 a = 1; extensions 100 to 199; }').at([0])
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    assert [f.number for f in message_of(schema, known_message(found, [*schema])).fields] == [1, 200]
