"""Keys in Avro from a real broker by the schemas of a real registry: as columns, and as what is deleted."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from joinlib import registered
from joinlib.compiled import compiled
from joinlib.errors import InputError, SpecError
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.kafka.test_avro import message, opened, rest, spec
from tests.spark.trial import Trial

VALUE = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
ID = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
PART = {"name": "part", "type": "string", "default": "none"}
BOTH = {**ID, "fields": [*ID["fields"], PART]}
INT = {"type": "int"}
KEYS = {"keyFormat": "avro"}


def changing(file: Path, *key: str) -> Path:
    """The spec with an upsert of these columns."""
    given = json.loads(file.read_text())
    given["spec"]["inputs"]["i"]["upsert"] = {"key": key}
    given["spec"]["output"] = {"mode": "changelog", "noop": {}}
    file.write_text(json.dumps(given))
    return file


def test_keys_as_columns(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Each by its own schema; the job goes on as it was begun, also with the registry gone."""
    topic = broker.topic("avro_keys")
    value, first = registry.register(f"{topic}-value", VALUE), registry.register(f"{topic}-key", ID)
    second = registry.register(f"{topic}-key", BOTH)
    body = message(value, VALUE, {"id": 0, "name": "x"})
    broker.send(topic, [body], key=message(first, ID, {"id": 1}))
    broker.send(topic, [body], key=message(second, BOTH, {"id": 2, "part": "p"}))
    broker.send(topic, [body])

    def read(url: str = registry.url) -> list[Any]:
        file = spec(tmp_path, broker, url, topic, metadata={"key": "k"}, **KEYS)
        return [row["k"] for row in rest(opened(file))]

    found = [{"id": 1, "part": "none"}, {"id": 2, "part": "p"}, None]
    assert read() == found
    registry.register(f"{topic}-key", {**BOTH, "fields": [*BOTH["fields"], {**PART, "name": "later"}]})
    assert read("http://127.0.0.1:9") == found


def test_keys_that_are_one_value(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Of the subject that is named; what does not fit it is refused before anything runs."""
    topic = broker.topic("avro_plain_keys")
    value, key = registry.register(f"{topic}-value", VALUE), registry.register("numbers", INT)
    broker.send(topic, [message(value, VALUE, {"id": 0, "name": "x"})], key=message(key, INT, 7))

    def file(columns: str, subject: str = "numbers") -> Path:
        named = {"registry": {"url": registry.url, "keySubject": subject}, "metadata": {"key": "k"}}
        return spec(tmp_path, broker, registry.url, topic, columns, **named, **KEYS)

    with pytest.raises(
        SpecError, match=r"spec.inputs.i.schema: the schema of subject numbers: field 'k' is int, which"
    ):
        registered.load(file("id BIGINT, k STRING"))
    with pytest.raises(
        SpecError, match=r"kafka.registry: subject nobody of .* is not known; .* correct keySubject"
    ):
        registered.load(file("id BIGINT, k BIGINT", "nobody"))
    assert rest(opened(file("id BIGINT, k BIGINT"))) == [{"id": 0, "k": 7}]
    assert rest(opened(file("fromRegistry"))) == [{"id": 0, "name": "x", "k": 7}]


def test_messages_without_a_value(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """They delete the key that they have in Avro; what is no such key is a dead letter."""
    topic = broker.topic("avro_deleted")
    value, key = registry.register(f"{topic}-value", VALUE), registry.register(f"{topic}-key", ID)
    one, two = (message(key, ID, {"id": id}) for id in (1, 2))
    broker.send(topic, [message(value, VALUE, {"id": 1, "name": "x"}), None], key=one)
    broker.send(topic, [message(value, VALUE, {"id": 2, "name": "y"})], key=two)
    bad = {
        b"2": "key: does not begin with a zero byte and the number of a schema",
        message(99_999, ID, {"id": 2}): "key: schema 99999 of registry .*: is not known",
        message(value, VALUE, {"id": 2, "name": "z"})[:-1]: "key: is not what its schema says",
        None: "has neither a value nor a key",
    }
    for wrong in bad:
        broker.send(topic, [None], key=wrong)

    with pytest.raises(InputError, match=f"topic {topic}, partition 0, offset 3: key: does not begin"):
        rest(opened(changing(spec(tmp_path, broker, registry.url, topic, **KEYS), "id")))
    letters = {"onBadMessage": "deadLetter", "deadLetters": {"path": "letters"}}
    rows = rest(opened(changing(spec(tmp_path, broker, registry.url, topic, **KEYS, **letters), "id")))

    assert [tuple(row.values()) for row in rows] == [(1, "x", 1), (1, None, -1), (2, "y", 1)]
    for letter, why in zip(pq.read_table(tmp_path / "letters").to_pylist(), bad.values(), strict=True):
        assert re.search(why, letter["error"]), letter["error"]


def test_columns_that_keys_do_not_have(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Refused before anything runs: a row that could not be deleted."""
    topic = broker.topic("avro_other_keys")
    registry.register(f"{topic}-value", VALUE)
    registry.register(f"{topic}-key", BOTH)
    file = spec(tmp_path, broker, registry.url, topic, **KEYS)
    with pytest.raises(
        SpecError, match=r"schema of subject .*-key: is record Key, which has no field 'name'; its fields"
    ):
        registered.load(changing(file, "id", "name"))


@pytest.mark.spark
def test_a_join_of_keys_through_spark(broker: Broker, registry: Registry, trial: Trial) -> None:
    """In processes of Spark's: rows of which some are deleted, beside the columns of their keys."""
    topic = broker.topic("avro_keys_joined", 2)
    value, key = registry.register(f"{topic}-value", VALUE), registry.register(f"{topic}-key", ID)
    for id in range(20):
        row = message(value, VALUE, {"id": id, "name": f"n{id}"})
        broker.send(topic, [row, *([None] if id % 3 == 0 else [])], id % 2, message(key, ID, {"id": id}))
    file = changing(spec(trial.folder, broker, registry.url, topic, metadata={"key": "k"}, **KEYS), "id")
    given = json.loads(file.read_text())
    given["spec"]["inputs"]["i"]["schema"] = "id BIGINT, name STRING, k STRUCT<id: BIGINT>"
    given["spec"]["inputs"]["j"] = given["spec"]["inputs"]["i"]
    given["spec"] |= {
        "sql": "SELECT i.id, j.name, j.k.id AS k FROM i JOIN j ON i.id = j.id",
        "output": {"mode": "changelog", "files": {"path": "out"}},
    }
    file.write_text(json.dumps(given))

    trial.run_plan(compiled(registered.load(file), 2))

    found = Counter[tuple[Any, ...]]()
    for row in pq.read_table(trial.folder / "out").to_pylist():
        went = row["_change_type"] in ("delete", "update_preimage")
        found[row["id"], row["name"], row["k"]] += -1 if went else 1
    assert +found == Counter((id, f"n{id}", id) for id in range(20) if id % 3)
