"""Results in Protobuf, by the schema that a run registers in a real registry; the official runtime reads them, and so does another job."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from joinlib.errors import NotReady, SpecError
from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.schemas import registered
from tests import configs
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.kafka.test_avro import opened, rest
from tests.kafka.test_avro_keys import changing
from tests.kafka.test_avro_output import SQL, newest, run_outer_join
from tests.kafka.test_protobuf import spec
from tests.spark.trial import Trial
from tests.unit.source.protobuf.shapes import files, row

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def target(url: str, topic: str, **registry: Any) -> KafkaSinkConfig:
    return configs.results("localhost:9092", topic, format="protobuf", registry={"url": url, **registry})


def type_of(registry: Registry, subject: str) -> Descriptor:
    """The first type of a subject's newest schema."""
    found = newest(registry, subject)
    assert found["schemaType"] == "PROTOBUF"
    return files(found["schema"]).at([0])


def numbers(registry: Registry, subject: str) -> dict[str, int]:
    return {f.name: f.number for f in type_of(registry, subject).fields}


def test_a_schema_is_registered_once(registry: Registry) -> None:
    """Each start finds the same id; a column more, less or elsewhere leaves the numbers of the others."""
    first = registered(target(registry.url, "proto-once"), COLUMNS)
    assert registered(target(registry.url, "proto-once"), COLUMNS) == first
    assert first.schema_id > 0
    assert type_of(registry, "proto-once-value").full_name == "proto_once"
    more = pa.schema([("at", pa.timestamp("us", "UTC")), *COLUMNS])
    assert registered(target(registry.url, "proto-once"), more).schema_id != first.schema_id
    assert numbers(registry, "proto-once-value") == {"at": 3, "id": 1, "name": 2}
    less = pa.schema([("id", pa.int64()), ("other", pa.struct([("x", pa.list_(pa.bool_()))]))])
    last = registered(target(registry.url, "proto-once"), less)
    assert numbers(registry, "proto-once-value") == {"id": 1, "other": 4}
    assert registered(target(registry.url, "proto-once"), less) == last
    registered(target(registry.url, "proto-once"), COLUMNS)
    assert numbers(registry, "proto-once-value") == {"id": 1, "name": 5}


def test_a_subject_that_has_a_schema(registry: Registry) -> None:
    """The message keeps name and numbers that readers know; what they could not follow is refused by the registry."""
    theirs = 'syntax = "proto3"; package shop; message Person { reserved 5; optional int64 id = 4; }'
    registry.register("proto-people", theirs)
    of = target(registry.url, "t", subject="proto-people")
    assert registered(of, COLUMNS).schema_id > 0
    assert type_of(registry, "proto-people").full_name == "shop.Person"
    assert numbers(registry, "proto-people") == {"id": 4, "name": 6}
    registry.post("/config/proto-people", {"compatibility": "BACKWARD"}, "PUT")
    wrong = pa.schema([("id", pa.string()), ("name", pa.string())])
    with pytest.raises(
        SpecError, match=r"refuses the schema \(409\): .*subject proto-people, or name another subject"
    ):
        registered(of, wrong)


def test_columns_that_come_and_go_where_readers_must_follow(registry: Registry) -> None:
    """A registry that compares with all versions before takes them: numbers and names of what went are reserved."""
    registered(target(registry.url, "proto-strict"), COLUMNS)
    registry.post("/config/proto-strict-value", {"compatibility": "BACKWARD_TRANSITIVE"}, "PUT")
    for names in (["id"], ["id", "more"], ["more", "id"], ["more"]):
        registered(target(registry.url, "proto-strict"), pa.schema([(name, pa.int64()) for name in names]))
    assert numbers(registry, "proto-strict-value") == {"more": 3}


def test_the_schema_of_keys(registry: Registry) -> None:
    """A message of their columns, beside that of the values, which keeps its numbers; text has none."""
    of = target(registry.url, "proto-keyed")
    keyed = replace(of, key=("name", "id"), spec=of.spec.model_copy(update={"key_format": "protobuf"}))
    found = registered(keyed, COLUMNS)
    assert found == registered(keyed, COLUMNS)
    assert found.key_schema_id != found.schema_id
    assert newest(registry, "proto-keyed-key")["id"] == found.key_schema_id
    assert type_of(registry, "proto-keyed-key").full_name == "proto_keyed_key"
    assert numbers(registry, "proto-keyed-key") == {"name": 1, "id": 2}
    registered(replace(keyed, key=("id",)), COLUMNS)
    assert numbers(registry, "proto-keyed-key") == {"id": 2}
    values = registered(of, COLUMNS)
    assert (values.schema_id, values.key_schema_id, values.key_message) == (found.schema_id, -1, None)


def test_a_registry_that_does_not_answer() -> None:
    with pytest.raises(NotReady, match=r"registry http://127\.0\.0\.1:9: no answer"):
        registered(target("http://127.0.0.1:9", "silent"), COLUMNS)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("mode", "keys"), [("append", "text"), ("changelog", "text"), ("upsert", "text"), ("upsert", "protobuf")]
)
def test_results_of_a_job(
    broker: Broker, registry: Registry, trial: Trial, mode: str, keys: str, tmp_path: Path
) -> None:
    """An outer join in each mode: rows, changes, or the last message of a key, as DuckDB has them."""
    topic = broker.topic(f"protobuf-{mode}-{keys}", 2)
    kafka = {"topic": topic, "format": "protobuf", "registry": {"url": registry.url}, "keyFormat": keys}
    run_outer_join(broker, trial, mode, kafka)

    runtime = GetMessageClass(type_of(registry, f"{topic}-value"))
    head = b"\0" + int(newest(registry, f"{topic}-value")["id"]).to_bytes(4, "big") + b"\0"
    rows = Counter[tuple[Any, ...]]()
    last: dict[bytes | None, Any] = {}
    for message in broker.read(topic):
        if message.value is None:
            last.pop(message.key, None)
            continue
        assert message.value.startswith(head)
        one = row(runtime.FromString(message.value[len(head) :]))
        last[message.key] = one
        rows[one["k"], one["v"], one["w"]] += (
            -1 if one.get("_change_type") in ("delete", "update_preimage") else 1
        )
    if mode == "upsert":
        rows = Counter((r["k"], r["v"], r["w"]) for r in last.values())
    if keys == "protobuf":
        own = GetMessageClass(type_of(registry, f"{topic}-key"))
        assert [row(own.FromString(key[len(head) :])) for key in last if key] == [
            {"k": r["k"]} for r in last.values()
        ]
        given = changing(spec(tmp_path, broker, registry.url, topic, keyFormat=keys), "k")
        read = Counter[tuple[Any, ...]]()
        for one in rest(opened(given)):
            read[one["k"]] += one["$weight"]
        assert +read == Counter({r["k"]: 1 for r in last.values()}), "another job deletes by these keys"
    assert +rows == trial.expected(SQL)
    assert -rows == Counter()
    if mode == "append":
        read = rest(opened(spec(tmp_path, broker, registry.url, topic)))
        assert Counter((r["k"], r["v"], r["w"]) for r in read) == rows
