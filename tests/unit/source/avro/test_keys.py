"""Keys as columns: one of any type, a record as a STRUCT or by its fields, and what a key cannot be read as."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.errors import InputError
from joinlib.source.kafka.codecs import AvroKeyCodec
from joinlib.source.kafka.registry import Registered
from joinlib.spec import ddl
from tests.unit.source.avro.test_rows import bare, column, plain, record, types, values, written

Json = Any
CODEC = AvroKeyCodec()
ONE = record(id="long")
TWO = record(id="long", part="string")


def read(schema: Json, keys: list[Any], columns: str, reader: Json = None) -> list[dict[str, Any]]:
    want, own = ddl.parse(columns), (json.dumps(reader),) if reader else ()
    return list(CODEC.rows((json.dumps(schema),), b"", want, own).table(written(schema, keys)).to_pylist())


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_column_takes_any_type(data: st.DataObject) -> None:
    """That which values are read as, too; it is the one that the columns of a registry have."""
    schema = data.draw(types())
    keys = data.draw(st.lists(values(schema), min_size=1, max_size=8))
    text = json.dumps(schema)
    want = CODEC.columns(CODEC.texts([Registered("", text)]))
    CODEC.check((text,), want)
    found = CODEC.rows((text,), b"", want, (text,)).table(
        written(plain(schema), [bare(schema, k) for k in keys])
    )
    assert found.column(0).combine_chunks().equals(column(want.field(0).type, keys))


@pytest.mark.parametrize(
    ("schema", "key", "columns", "row"),
    [
        ("int", 7, "k BIGINT", {"k": 7}),
        (["null", "string"], None, "k STRING", {"k": None}),
        (ONE, {"id": 7}, "k BIGINT", {"k": 7}),
        (ONE, {"id": 7}, "id BIGINT", {"id": 7}),
        (ONE, {"id": 7}, "k STRUCT<id: BIGINT>", {"k": {"id": 7}}),
        (TWO, {"id": 7, "part": "x"}, "k STRUCT<part: STRING, id: BIGINT>", {"k": {"part": "x", "id": 7}}),
        (TWO, {"id": 7, "part": "x"}, "part STRING, id BIGINT", {"part": "x", "id": 7}),
        (TWO, {"id": 7, "part": "x"}, "part STRING", {"part": "x"}),
    ],
)
def test_what_columns_a_key_has(schema: Json, key: Any, columns: str, row: dict[str, Any]) -> None:
    """A single column is the key, or its only field; a STRUCT is the record; others go by their names."""
    assert read(schema, [key, key], columns) == [row, row]


def test_fields_that_a_key_lacks() -> None:
    """The reader's schema knows their other names and their defaults."""
    own = record(n="long", part="string")
    own["fields"][0]["aliases"], own["fields"][1]["default"] = ["id"], "none"
    assert read(ONE, [{"id": 7}], "n BIGINT, part STRING", own) == [{"n": 7, "part": "none"}]


@pytest.mark.parametrize(
    ("schema", "columns", "said"),
    [
        ("string", "k BIGINT", "field 'k' is string, which cannot be read as int64; declare a type"),
        ("string", "id BIGINT, part STRING", "is string, which is one column, and not id, part; have keys be a record"),
        (ONE, "k STRING", "field 'k' is long, which cannot be read as string; declare a type"),
        (TWO, "k BIGINT", "has no field 'k'; its fields are id, part: name the columns of keys like them, or let"),
        (TWO, "id BIGINT, other STRING", "has no field 'other'; its fields are id, part"),
        (ONE, "k STRUCT<id: STRING>", "field 'k.id' is long, which cannot be read as string"),
    ],
)  # fmt: skip
def test_columns_that_a_key_does_not_have(schema: Json, columns: str, said: str) -> None:
    """Named before anything runs, and by each key that is written so."""
    for reader in ((), (json.dumps(schema),)):
        with pytest.raises(InputError) as error:
            CODEC.rows((json.dumps(schema),), b"", ddl.parse(columns), reader)
        assert said in str(error.value)
    with pytest.raises(InputError) as error:
        CODEC.check((json.dumps(schema),), ddl.parse(columns))
    assert said in str(error.value)
