"""What a spec says of topics: mistakes are named at their place, with the fix."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from joinlib.errors import SpecError
from joinlib.spec import StreamJoin, parse
from joinlib.spec.kafka import KafkaConnection

SECURED = {
    "protocol": "SASL_SSL",
    "mechanism": "PLAIN",
    "usernameEnv": "WHO",
    "passwordFile": "secret/password",
}


def parsed(schema: str = "k BIGINT, key STRING, at TIMESTAMP", **kafka: Any) -> StreamJoin:
    given = {"bootstrapServers": "k-1:9092, k-2:9092", "topic": "orders", **kafka}
    given = {name: value for name, value in given.items() if value is not None}
    spec = {
        "sql": "SELECT k FROM orders",
        "inputs": {"orders": {"schema": schema, "kafka": given}},
        "output": {"noop": {}},
        "checkpoint": {"path": "checkpoint"},
    }
    head = {"apiVersion": "streamjoin.dev/v1alpha1", "kind": "StreamJoin", "metadata": {"name": "t"}}

    return parse(yaml.safe_dump({**head, "spec": spec}), "t.yaml", Path("/base"))


@pytest.mark.parametrize(
    ("kafka", "said"),
    [
        ({"bootstrapServers": "k"}, "bootstrapServers: is not a list of brokers; write kafka-1:9092"),
        ({"bootstrapServers": "k:0"}, "bootstrapServers: has no port between 1 and 65535"),
        ({"topics": ["b"]}, "kafka: needs a topic, or topics, and not both"),
        ({"topic": None}, "kafka: needs a topic, or topics"),
        ({"topic": None, "topics": ["a", "a"]}, "topics: names a topic twice"),
        ({"topic": ".."}, "'..' is not the name of a topic"),
        ({"format": "xml"}, "format: 'xml' is not one of json, arrow, csv"),
        ({"format": "protobuf"}, "registry: belongs to format: avro or protobuf; write both or none"),
        ({"registry": {"url": "http://r:8081"}}, "registry: belongs to format: avro or protobuf; write both or none"),
        ({"format": "avro", "registry": {"url": "http://r:8081", "message": "shop.Order"}},
         "registry.message: is for format: protobuf; remove one of them"),
        ({"format": "protobuf", "registry": {"url": "http://r:8081", "message": "a b"}}, "registry.message: "),
        ({"keyFormat": "avro"}, "keyFormat: is avro, but format is json; correct one of them"),
        ({"format": "avro", "registry": {"url": "http://r:8081", "keySubject": "k"}},
         "registry.keySubject: is for keyFormat: avro or protobuf; write both or none"),
        ({"csv": {"delimiter": ";", "header": False}}, "csv: is for format csv, but format is json"),
        ({"format": "csv", "csv": {"header": True}}, "csv.header: is true, but messages have no header"),
        ({"onBadMessage": "deadLetter"}, "deadLetters: belongs to onBadMessage: deadLetter"),
        ({"deadLetters": {"path": "bad"}}, "deadLetters: belongs to onBadMessage: deadLetter"),
        ({"onBadMessage": "deadLetter", "deadLetters": {"path": "checkpoint/bad"}}, "overlap; use folders apart"),
        ({"metadata": {"key": "kee"}}, "metadata.key: no column 'kee' in the schema"),
        ({"metadata": {"timestamp": "k"}}, "metadata.timestamp: column 'k' is int64; declare it as TIMESTAMP"),
        ({"metadata": {"key": "key", "topic": "key"}}, "metadata: names a column twice"),
        ({"maxBytesPerBatch": "1MB"}, "maxBytesPerBatch: '1MB' is not an amount of memory"),
        ({"security": {"protocol": "SASL_SSL"}}, "security: SASL_SSL needs mechanism: PLAIN, SCRAM-SHA-256"),
        ({"security": {**SECURED, "passwordEnv": "P"}}, "security: SASL_SSL needs one of passwordFile and passwordEnv"),
        ({"security": {**SECURED, "protocol": "SSL"}}, "mechanism, username, password is for SASL_PLAINTEXT and SASL_SSL"),
        ({"security": {"caFile": "ca"}}, "caFile is for SSL and SASL_SSL, but protocol is PLAINTEXT"),
        ({"security": {"protocol": "SSL", "certFile": "c"}}, "certFile and keyFile belong together"),
        ({"security": {**SECURED, "password": "hunter2"}}, "security.password: unknown field"),
    ],
)  # fmt: skip
def test_refused(kafka: dict[str, Any], said: str) -> None:
    """One sentence for each mistake; a secret that is written where none belongs is not repeated."""
    with pytest.raises(SpecError) as error:
        parsed(**kafka)
    assert said in str(error.value)
    assert "hunter2" not in str(error.value)


def test_the_value_needs_a_column() -> None:
    """Rows of metadata alone would hide messages that cannot be decoded."""
    with pytest.raises(SpecError, match="leaves no column for the value"):
        parsed("key STRING", metadata={"key": "key"})


def test_a_key_in_avro_has_any_type() -> None:
    """One that is text does not."""
    given: dict[str, Any] = {"format": "avro", "registry": {"url": "http://r:8081"}, "metadata": {"key": "k"}}
    for kind in ("BIGINT", "STRUCT<id: BIGINT, part: STRING>"):
        schema = f"k {kind}, at TIMESTAMP"
        kafka = parsed(schema, keyFormat="avro", **given).spec.inputs["orders"].kafka
        assert kafka is not None and kafka.metadata.columns == {"key": "k"}
        with pytest.raises(
            SpecError, match=r"metadata.key: column 'k' is .*; declare it as STRING or BINARY"
        ):
            parsed(schema, **given)
    with pytest.raises(SpecError, match=r"metadata.key: no column 'kee' in the schema"):
        parsed(keyFormat="avro", **{**given, "metadata": {"key": "kee"}})


def test_accepted() -> None:
    """Paths are relative to the spec's folder; what is given twice means the same."""
    kafka = parsed(security=SECURED, metadata={"key": "key"}).spec.inputs["orders"].kafka
    assert kafka is not None
    assert kafka.names == ("orders",)
    assert str(kafka.security.password_file) == "/base/secret/password"
    assert kafka.metadata.columns == {"key": "key"}
    assert KafkaConnection(bootstrap_servers="k:1") == KafkaConnection(bootstrap_servers="k:1")
    assert hash(kafka.security) == hash(kafka.security.model_copy())
