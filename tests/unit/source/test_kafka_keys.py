"""Keys in Avro: as a column, and as what a message without a value deletes. Their schemas are kept already."""

import json
from pathlib import Path
from typing import Any

import pytest

from joinlib.source import RowChanges
from joinlib.source.kafka import registry
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.messages import Message
from joinlib.spec import ddl
from joinlib.spec.inputs import KafkaMetadata
from joinlib.spec.kafka import KeyFormat, SchemaRegistry
from joinlib.worker import Worker, using
from tests.configs import topics
from tests.messages import decoded, rows, sent
from tests.unit.source.avro.test_rows import record, written

LONG, ID, BOTH, TEXT = 1, 2, 3, 4
VALUE = 9
KINDS: dict[int, Any] = {
    LONG: "long",
    ID: record(id="long"),
    BOTH: record(part="string", id="long"),
    TEXT: ["null", "string"],
    VALUE: record(id="long", name="string"),
}
BY_ID = RowChanges(None, ("id",))


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    """Schemas that are kept, and a worker that has read nothing."""
    for id, kind in KINDS.items():
        registry.keep(tmp_path, [json.dumps(kind)], id)
    with using(Worker()):
        yield tmp_path


def framed(id: int, datum: Any) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + written(KINDS[id], [datum])[0]


def message(key: bytes | None, id: int | None = 0, at: int = 0) -> Message:
    """A row; a message without a value if `id` is None."""
    return sent(None if id is None else framed(VALUE, {"id": id, "name": f"n{id}"}), at, key)


def decoder(
    folder: Path,
    schema: str,
    changes: RowChanges | None = None,
    key_format: KeyFormat = "avro",
    **metadata: str,
) -> Decoder:
    config = topics(
        "i",
        "k:1",
        "orders",
        changes=changes,
        schemas=folder,
        format="avro",
        key_format=key_format,
        registry=SchemaRegistry(url="http://127.0.0.1:9"),
        metadata=KafkaMetadata(**metadata),
    )
    columns = ddl.parse(schema)
    return Decoder(config, columns, tuple(columns.names))


def test_a_column_of_the_key(folder: Path) -> None:
    """Keys of several schemas, and none, each beside its row."""
    keys = [framed(LONG, 7), None, framed(ID, {"id": 8}), framed(LONG, -1), None]
    given = [message(key, at) for at, key in enumerate(keys)]
    found = decoded(decoder(folder, "id BIGINT, k BIGINT", key="k"), given)
    assert rows(found) == [(0, 7), (1, None), (2, 8), (3, -1), (4, None)]
    assert rows(decoded(decoder(folder, "id BIGINT, k BIGINT", key="k"), given[1:2])) == [(1, None)]
    both = [message(framed(BOTH, {"part": "x", "id": 1})), message(None)]
    made = decoder(folder, "name STRING, k STRUCT<id: BIGINT, part: STRING>", key="k")
    assert rows(decoded(made, both)) == [("n0", {"id": 1, "part": "x"}), ("n0", None)]


def test_a_message_without_a_value_deletes_its_key(folder: Path) -> None:
    """By the fields of a record, or by the value of a single column; in its place among the rows."""
    given = [
        message(framed(LONG, 1), 1),
        message(framed(LONG, 1), None),
        message(framed(ID, {"id": 2}), 2),
        message(framed(BOTH, {"part": "x", "id": 2}), None),
        message(framed(LONG, 3), 3),
    ]
    found = decoded(decoder(folder, "id BIGINT, name STRING", BY_ID), given)
    assert rows(found) == [(1, "n1", 1), (1, None, -1), (2, "n2", 1), (2, None, -1), (3, "n3", 1)]
    two = decoder(folder, "id BIGINT, part STRING NOT NULL", RowChanges(None, ("id", "part")))
    assert rows(decoded(two, [message(framed(BOTH, {"part": "x", "id": 2}), None)])) == [(2, "x", -1)]


def test_the_key_of_an_upsert_may_be_the_column_of_keys(folder: Path) -> None:
    """Then rows and deletions have it from there; so has a part of it that is in no value."""
    made = decoder(folder, "k STRING, name STRING", RowChanges(None, ("k",)), key="k")
    given = [message(framed(TEXT, "a"), 1), message(framed(TEXT, "a"), None)]
    assert rows(decoded(made, given)) == [("a", "n1", 1), ("a", None, -1)]
    both = decoder(folder, "part STRING, id BIGINT", RowChanges(None, ("part", "id")), key="part")
    given = [message(framed(BOTH, {"part": "x", "id": 1}), at) for at in (1, None)]
    assert rows(decoded(both, given)) == [("x", 1, 1), ("x", 1, -1)]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (b"7", "key: does not begin with a zero byte and the number of a schema"),
        (b"", "key: does not begin with a zero byte and the number of a schema"),
        (framed(LONG, 7)[:-1], "key: is not what its schema says"),
        (framed(LONG, 7) + b"\0", "key: is not what its schema says"),
        (framed(TEXT, "secret"), "key: schema 4: field 'id' is a union of null and string, which cannot be read as int64"),
        (None, "has neither a value nor a key, so it does not say what it deletes"),
    ],
)  # fmt: skip
def test_a_key_that_deletes_nothing_is_a_bad_message(folder: Path, key: bytes | None, said: str) -> None:
    """Alone: its neighbours come."""
    good = message(framed(LONG, 1), None)
    found, ((bad, why),) = decoded(
        decoder(folder, "id BIGINT, name STRING", BY_ID), [good, message(key, None), good]
    )
    assert found is not None and found.column(0).to_pylist() == [1, 1]
    assert bad.key == key
    assert why.startswith(said)
    assert "secret" not in why


def test_keys_that_are_null(folder: Path) -> None:
    """No upsert has one, and no column that is declared NOT NULL."""
    made = decoder(folder, "id STRING, name STRING", BY_ID)
    assert decoded(made, [message(framed(TEXT, None), None)])[1][0].reason == (
        "value: column 'id' is NULL, but belongs to upsert.key (row 0 of those)"
    )
    made = decoder(folder, "id BIGINT, k BIGINT NOT NULL", key="k")
    found, ((_, why),) = decoded(made, [message(framed(LONG, 1), 1), message(None, 2)])
    assert rows((found, [])) == [(1, 1)]
    assert why == "value: column 'k' is declared NOT NULL, but is NULL (row 0 of those)"


def test_keys_stay_as_they_are_where_they_are_text(folder: Path) -> None:
    """Framed or not: the bytes are the column."""
    key = framed(LONG, 7)
    made = decoder(folder, "id BIGINT, k BINARY", key_format="text", key="k")
    assert rows(decoded(made, [message(key, 1)])) == [(1, key)]
