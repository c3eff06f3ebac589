"""What a spec may say of an output topic."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from joinlib.compiled import compiled
from joinlib.errors import SpecError
from joinlib.spec import parse
from joinlib.spec.output import KafkaOutput, Output

SERVERS = {"bootstrapServers": "kafka:9092", "topic": "t"}
REGISTRY = {"url": "http://registry:8081"}
SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: out}
spec:
  sql: SELECT a.k AS id, b.v AS v FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT, v BIGINT", generator: {rows: 1}}
    b: {schema: "k BIGINT, v BIGINT", generator: {rows: 1}}
  output: {kafka: {bootstrapServers: "kafka:9092", topic: t, key: [KEY]}}
  checkpoint: {path: checkpoint}
"""


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"format": "arrow", "key": ["a"]}, "a message of format arrow holds many rows; remove key"),
        ({"key": ["a", "a"]}, "names a column twice"),
        ({"format": "xml"}, "'json', 'csv', 'arrow', 'debezium', 'avro' or 'protobuf'"),
        ({"format": "avro"}, "registry: belongs to format: avro or protobuf; write both or none"),
        ({"format": "protobuf"}, "registry: belongs to format: avro or protobuf; write both or none"),
        ({"registry": REGISTRY}, "registry: belongs to format: avro or protobuf; write both or none"),
        (
            {"format": "avro", "registry": {**REGISTRY, "message": "shop.Row"}},
            "registry.message: is for messages in Protobuf",
        ),
        (
            {"format": "protobuf", "registry": {**REGISTRY, "message": "shop.Row"}},
            "registry.message: is for messages in Protobuf that are read",
        ),
        ({"keyFormat": "avro"}, "keyFormat: is avro, but format is json; correct one of them"),
        (
            {"format": "protobuf", "registry": REGISTRY, "keyFormat": "avro"},
            "keyFormat: is avro, but format is protobuf; correct one of them",
        ),
        (
            {"format": "avro", "registry": {**REGISTRY, "keySubject": "k"}},
            "registry.keySubject: is for keyFormat: avro or protobuf; write both or none",
        ),
    ],
)
def test_mistakes_are_named(more: dict[str, Any], problem: str) -> None:
    """With the fix."""
    with pytest.raises(ValidationError, match=problem):
        KafkaOutput.model_validate({**SERVERS, **more})


def test_a_key_in_avro_has_columns() -> None:
    """Those of the messages, or those of the result."""
    kafka = {**SERVERS, "format": "avro", "registry": REGISTRY, "keyFormat": "avro"}
    with pytest.raises(
        ValidationError, match=r"kafka.keyFormat: is avro, but messages have no key; add kafka.key"
    ):
        Output.model_validate({"kafka": kafka})
    assert Output.model_validate({"kafka": {**kafka, "key": ["a"]}}).kafka is not None
    assert Output.model_validate({"mode": "upsert", "key": ["a"], "kafka": kafka}).kafka is not None


def test_keys_are_columns_of_the_result() -> None:
    """Not of an input; the nearest is offered."""
    assert compiled(parse(SPEC.replace("KEY", "id"), "out.yaml", Path()), 1).join.sink.kafka is not None
    with pytest.raises(SpecError, match=r"output.kafka.key: the result has no column 'k'"):
        compiled(parse(SPEC.replace("KEY", "k"), "out.yaml", Path()), 1)


def test_columns_that_protobuf_does_not_have() -> None:
    """Before anything runs, with what to write instead."""
    given = SPEC.replace("key: [KEY]", f"format: protobuf, registry: {{url: '{REGISTRY['url']}'}}")
    assert compiled(parse(given, "out.yaml", Path()), 1).join.sink.kafka is not None
    dates = given.replace("b.v AS v", "DATE '2026-01-02' AS v")
    with pytest.raises(SpecError, match=r"no type for column 'v', which is date32.*CAST\(v AS STRING\)"):
        compiled(parse(dates, "out.yaml", Path()), 1)
    with pytest.raises(SpecError, match=r"protobuf has no name like that of column 'b.v \+ 1'; give it one"):
        compiled(parse(given.replace("b.v AS v", "b.v + 1"), "out.yaml", Path()), 1)
