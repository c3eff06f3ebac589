"""Keys in Protobuf: as a column, and as what a message without a value deletes. Their schemas are kept already."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from joinlib.errors import InputError
from joinlib.source import RowChanges
from joinlib.source.kafka import registry
from joinlib.source.kafka.codecs import ProtobufKeyCodec
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.messages import Message
from joinlib.source.protobuf.protoc import ProtoFile, compiled_files
from joinlib.source.protobuf.schema import ProtoSchema
from joinlib.spec import ddl
from joinlib.spec.inputs import KafkaMetadata
from joinlib.spec.kafka import SchemaRegistry
from joinlib.worker import Worker, using
from tests.configs import topics
from tests.messages import decoded, rows, sent

ONE, BOTH, LATER, MAYBE, OTHER, VALUE = range(1, 7)
HEAD = 'syntax = "proto3"; package s; '
TEXTS = {
    ONE: "message Key { int64 id = 1; }",
    BOTH: "message Key { string part = 2; int64 id = 1; } message Second { int64 id = 1; }",
    LATER: "message Key { string area = 2; int64 id = 1; bool more = 3; }",  # part has another name
    MAYBE: "message Key { optional string id = 1; }",
    OTHER: "message Another { int64 id = 1; }",
    VALUE: "message Value { int64 id = 1; string name = 2; }",
}
COMPILED = {id: compiled_files([ProtoFile("", HEAD + text)]) for id, text in TEXTS.items()}
BY_ID = RowChanges(None, ("id",))


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    """Schemas that are kept, and a worker that has read nothing."""
    for id, text in COMPILED.items():
        registry.keep(tmp_path, [text], id)
    with using(Worker()):
        yield tmp_path


def framed(schema: int, indexes: bytes = b"\0", of_type: str | None = None, **fields: Any) -> bytes:
    of = ProtoSchema(COMPILED[schema]).named(of_type)
    return b"\0" + schema.to_bytes(4, "big") + indexes + GetMessageClass(of)(**fields).SerializeToString()


def message(key: bytes | None, id: int | None = 0, at: int = 0) -> Message:
    """A row; a message without a value if `id` is None."""
    return sent(None if id is None else framed(VALUE, id=id, name=f"n{id}"), at, key)


def decoder(
    folder: Path, reader: int, schema: str, changes: RowChanges | None = None, **metadata: str
) -> Decoder:
    config = topics(
        "i",
        "k:1",
        "orders",
        changes=changes,
        schemas=folder,
        format="protobuf",
        key_format="protobuf",
        registry=SchemaRegistry(url="http://127.0.0.1:9"),
        metadata=KafkaMetadata(**metadata),
    )
    columns = registry.with_reader(ddl.parse(schema), [COMPILED[VALUE]])
    columns = registry.with_reader(columns, [COMPILED[reader]], registry.KEYS)
    return Decoder(config, columns, tuple(columns.names))


def test_a_column_of_the_key(folder: Path) -> None:
    """Keys of several schemas, and none, each beside its row; a single field has any name."""
    keys = [framed(ONE, id=7), None, framed(BOTH, id=8, part="x"), framed(ONE), None]
    given = [message(key, at) for at, key in enumerate(keys)]
    found = decoded(decoder(folder, ONE, "id BIGINT, k BIGINT", key="k"), given)
    assert rows(found) == [(0, 7), (1, None), (2, 8), (3, 0), (4, None)]
    assert rows(decoded(decoder(folder, ONE, "id BIGINT, k BIGINT", key="k"), given[1:2])) == [(1, None)]


def test_all_of_the_key(folder: Path) -> None:
    """As a STRUCT, by the reader's names: a renamed field is the same one, and what a writer lacks is zero."""
    keys = [framed(BOTH, id=1, part="x"), None, framed(LATER, id=2, area="y", more=True), framed(ONE, id=3)]
    made = decoder(folder, BOTH, "name STRING, k STRUCT<id: BIGINT, part: STRING NOT NULL>", key="k")
    found = decoded(made, [message(key) for key in keys])
    assert [k for _, k in rows(found)] == [
        {"id": 1, "part": "x"},
        None,
        {"id": 2, "part": "y"},
        {"id": 3, "part": ""},
    ]


def test_a_message_without_a_value_deletes_its_key(folder: Path) -> None:
    """By the fields of the message; in its place among the rows."""
    given = [
        message(framed(ONE, id=1), 1),
        message(framed(ONE, id=1), None),
        message(framed(BOTH, id=2, part="x"), 2),
        message(framed(BOTH, id=2, part="x"), None),
    ]
    found = decoded(decoder(folder, BOTH, "id BIGINT, name STRING", BY_ID), given)
    assert rows(found) == [(1, "n1", 1), (1, None, -1), (2, "n2", 1), (2, None, -1)]
    two = decoder(folder, BOTH, "id BIGINT, part STRING NOT NULL", RowChanges(None, ("id", "part")))
    assert rows(decoded(two, [message(framed(BOTH, id=2, part="x"), None)])) == [(2, "x", -1)]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (b"7", "key: does not begin with a zero byte and the number of a schema"),
        (framed(ONE)[:5], "key: does not say, behind the number of its schema, which message type it is"),
        (b"\1" + framed(ONE)[1:], "key: does not begin with a zero byte and the number of a schema"),
        (framed(ONE, id=700)[:-1], "key: is not what its schema says"),
        (framed(OTHER, id=7), "key: schema 5: it is a s.Another, but the columns are those of a s.Key; have the keys"),
        (framed(BOTH, b"\2\2", "s.Second", id=7), "key: schema 2: it is a s.Second, but"),
        (framed(MAYBE, id="secret"), "key: schema 4: field 'id' is string, which cannot be read as int64"),
        (None, "has neither a value nor a key, so it does not say what it deletes"),
    ],
)  # fmt: skip
def test_a_key_that_deletes_nothing_is_a_bad_message(folder: Path, key: bytes | None, said: str) -> None:
    """Alone: its neighbours come."""
    good = message(framed(ONE, id=1), None)
    made = decoder(folder, ONE, "id BIGINT, name STRING", BY_ID)
    found, ((bad, why),) = decoded(made, [good, message(key, None), good])
    assert found is not None and found.column(0).to_pylist() == [1, 1]
    assert bad.key == key
    assert why.startswith(said)
    assert "secret" not in why


def test_keys_that_are_unset(folder: Path) -> None:
    """Where Protobuf can tell, they are NULL, which no upsert has."""
    made = decoder(folder, MAYBE, "id STRING, name STRING", BY_ID)
    assert decoded(made, [message(framed(MAYBE), None)])[1][0].reason == (
        "value: column 'id' is NULL, but belongs to upsert.key (row 0 of those)"
    )


@pytest.mark.parametrize(
    ("reader", "columns", "said"),
    [
        (
            BOTH,
            "k BIGINT",
            "s.Key has no field 'k'; its fields are part, id: name the columns of keys like them",
        ),
        (BOTH, "id BIGINT, other BIGINT", "s.Key has no field 'other'"),
        (ONE, "k STRING", "field 'id' is int64, which cannot be read as string"),
        (ONE, "id BIGINT, part STRING", "s.Key has no field 'part'"),
    ],
)
def test_columns_that_keys_do_not_have(reader: int, columns: str, said: str) -> None:
    """Before anything runs."""
    with pytest.raises(InputError) as found:
        ProtobufKeyCodec().check([COMPILED[reader]], ddl.parse(columns))
    assert str(found.value).startswith(said)


def test_the_column_of_a_whole_key() -> None:
    columns = ProtobufKeyCodec().columns([COMPILED[BOTH]])
    assert ddl.to_ddl(columns) == "key STRUCT<part: STRING NOT NULL, id: BIGINT NOT NULL> NOT NULL"
    ProtobufKeyCodec().check([COMPILED[BOTH]], pa.schema([columns.field(0).with_name("k")]))
