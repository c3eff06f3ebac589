"""Avro from a real broker by the schemas of a real registry; fastavro writes the messages."""

import io
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from jobs.cli.commands import app
from joinlib import registered
from joinlib.compiled import compiled
from joinlib.errors import InputError, NotReady, SpecError
from joinlib.source import StreamInput, make
from joinlib.worker import Worker, using
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.spark.trial import Trial

FIRST = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "customer", "type": "string"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
    ],
}
SECOND = {
    **FIRST,
    "fields": [
        {"name": "gone", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "id", "type": "long"},
        {"name": "buyer", "type": "string", "aliases": ["customer"], "default": "?"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "at",
            "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
            "default": None,
        },
        {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {"new": 1}},
    ],
}
ROW = {"id": 1, "customer": "a", "price": Decimal("1.50"), "on": date(2026, 1, 2)}
AT = datetime(2026, 1, 2, 3, tzinfo=UTC)
NEW = {
    "gone": ["x"],
    "id": 2**40,
    "buyer": "b",
    "price": Decimal("-2.25"),
    "on": date(1969, 1, 2),
    "at": AT,
    "tags": {},
}


def body(schema: Any, row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def message(id: int, schema: Any, row: Any) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + body(schema, row)


def spec(
    folder: Path, broker: Broker, url: str, topic: str, columns: str = "fromRegistry", **kafka: Any
) -> Path:
    """A spec that reads a topic."""
    given = {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "avro"},
        "spec": {
            "inputs": {
                "i": {
                    "schema": columns,
                    "kafka": {
                        "bootstrapServers": broker.servers, "topic": topic, "format": "avro", "registry": {"url": url},
                        **kafka,
                    },
                }
            },
            "sql": "SELECT * FROM i",
            "output": {"console": {}},
            "checkpoint": {"path": "checkpoint"},
        },
    }  # fmt: skip
    file = folder / "avro.yaml"
    file.write_text(json.dumps(given))
    return file


def opened(file: Path) -> StreamInput:
    """The input of a spec, as a run has it."""
    source = compiled(registered.load(file), 1).source
    return make("i", source.sources[0].config, source.sources[0].schema, source.logs)


def rest(input: StreamInput) -> list[dict[str, Any]]:
    """All rows; in a process that has read nothing yet."""
    with using(Worker()):
        slices = input.slices(0, input.discover())
        names = input.reader.schema.names
        return [row for batch in input.reader.read_many(slices, names) for row in batch.to_pylist()]


def test_schemas_that_evolve_within_a_topic(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Each message is read by its own schema; later, with the registry gone, the same rows come again."""
    topic = broker.topic("avro_evolves")
    first = registry.register(f"{topic}-value", FIRST)
    second = registry.register(f"{topic}-value", SECOND)
    sent = [message(first, FIRST, ROW), message(second, SECOND, NEW), message(first, FIRST, {**ROW, "id": 3})]
    broker.send(topic, sent)

    file = spec(tmp_path, broker, registry.url, topic, metadata={"offset": "at_offset"})
    rows = rest(opened(file))

    old = {"gone": [], "buyer": "a", "price": ROW["price"], "on": ROW["on"], "at": None, "tags": [("new", 1)]}
    assert rows == [
        {"id": 1, **old, "at_offset": 0},
        {**NEW, "tags": [], "at_offset": 1},
        {"id": 3, **old, "at_offset": 2},
    ]
    registry.register(
        f"{topic}-value", {**SECOND, "fields": SECOND["fields"][:-1]}
    )  # the job keeps its columns
    assert (
        rest(opened(spec(tmp_path, broker, "http://127.0.0.1:9", topic, metadata={"offset": "at_offset"})))
        == rows
    )


def test_declared_columns(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """They may be fewer and wider; what cannot be read as them is refused before anything runs."""
    topic = broker.topic("avro_declared")
    id = registry.register(f"{topic}-value", FIRST)
    broker.send(topic, [message(id, FIRST, ROW)])

    assert rest(opened(spec(tmp_path, broker, registry.url, topic, "price DECIMAL(12, 4), id BIGINT"))) == [
        {"price": Decimal("1.5000"), "id": 1}
    ]
    with pytest.raises(
        SpecError, match=r"avro.yaml: spec.inputs.i.schema: .*field 'customer' is string.*int64; declare"
    ):
        opened(spec(tmp_path, broker, registry.url, topic, "customer BIGINT"))
    with pytest.raises(SpecError, match=r"has no field 'other', which is declared NOT NULL"):
        opened(spec(tmp_path, broker, registry.url, topic, "other BIGINT NOT NULL"))


def test_schemas_that_refer_to_others(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    topic = broker.topic("avro_refers")
    money = {"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}
    bill = {"type": "record", "name": "shop.Bill", "fields": [{"name": "sum", "type": "shop.Money"}]}
    registry.register("money", money)
    referred = [{"name": "shop.Money", "subject": "money", "version": 1}]
    id = registry.register(f"{topic}-value", bill, referred)
    whole = {**bill, "fields": [{"name": "sum", "type": money}]}
    broker.send(topic, [message(id, whole, {"sum": {"cents": 5}})])

    assert rest(opened(spec(tmp_path, broker, registry.url, topic))) == [{"sum": {"cents": 5}}]


def test_messages_that_cannot_be_read(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Each stops the job with its place, or is kept as a dead letter; the others are read."""
    topic = broker.topic("avro_bad")
    id = registry.register(f"{topic}-value", FIRST)
    other = registry.register("elsewhere", {**FIRST, "fields": [{"name": "id", "type": "string"}]})
    good = message(id, FIRST, ROW)
    bad = {
        b"\1" + good[1:]: "does not begin with a zero byte",
        b"\0\0": "does not begin with a zero byte",
        message(99_999, FIRST, ROW): "schema 99999 of registry .* is not known",
        good[:-1]: "is not what its schema says",
        good + b"\0": "is not what its schema says",
        message(
            other, {**FIRST, "fields": [{"name": "id", "type": "string"}]}, {"id": "x"}
        ): "field 'id' is string",
    }
    broker.send(topic, [good, *bad, good])
    letters = {"onBadMessage": "deadLetter", "deadLetters": {"path": "letters"}}

    with pytest.raises(InputError, match=f"topic {topic}, partition 0, offset 1: does not begin"):
        rest(opened(spec(tmp_path, broker, registry.url, topic)))
    assert rest(opened(spec(tmp_path, broker, registry.url, topic, **letters))) == [ROW, ROW]

    found = pq.read_table(tmp_path / "letters").to_pylist()
    assert [f["offset"] for f in found] == [1, 2, 3, 4, 5, 6]
    for letter, why in zip(found, bad.values(), strict=True):
        assert re.search(why, letter["error"]), letter["error"]


def test_a_registry_that_does_not_answer(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """It is nobody's message that is bad, so none becomes a dead letter."""
    topic = broker.topic("avro_silent")
    broker.send(topic, [message(registry.register(f"{topic}-value", FIRST), FIRST, ROW)])
    letters = {"onBadMessage": "deadLetter", "deadLetters": {"path": "letters"}}
    opened(
        spec(tmp_path, broker, registry.url, topic)
    ).discover()  # the reader's schema is kept, and no other

    with pytest.raises(NotReady, match=r"registry http://127\.0\.0\.1:9: no answer"):
        rest(opened(spec(tmp_path, broker, "http://127.0.0.1:9", topic, **letters)))
    assert not (tmp_path / "letters").exists()
    with pytest.raises(
        SpecError, match=r"kafka.registry: subject nobody of registry .* is not known; register"
    ):
        registered.load(_elsewhere(tmp_path, broker, registry, topic))


def _elsewhere(folder: Path, broker: Broker, registry: Registry, topic: str) -> Path:
    (folder / "other").mkdir()
    given = {"url": registry.url, "subject": "nobody"}
    return spec(folder / "other", broker, registry.url, topic, registry=given)


@pytest.mark.spark
def test_a_join_of_avro_through_spark(broker: Broker, registry: Registry, trial: Trial) -> None:
    """Rows of two schemas of one topic are joined, in processes of Spark's, with the columns of the registry."""
    topic = broker.topic("avro_joined", 2)
    first = registry.register(f"{topic}-value", FIRST)
    second = registry.register(f"{topic}-value", SECOND)
    old = [message(first, FIRST, {**ROW, "id": i}) for i in range(100)]
    new = [message(second, SECOND, {**NEW, "id": i}) for i in range(100)]
    broker.send(topic, old, 0)
    broker.send(topic, new, 1)
    file = spec(trial.folder, broker, registry.url, topic)
    given = json.loads(file.read_text())
    given["spec"]["inputs"]["j"] = given["spec"]["inputs"]["i"]
    given["spec"] |= {
        "sql": "SELECT i.id, i.buyer, j.price FROM i JOIN j ON i.id = j.id AND i.at IS NULL AND j.at IS NOT NULL",
        "output": {"files": {"path": "out"}},
    }
    file.write_text(json.dumps(given))

    trial.run_plan(compiled(registered.load(file), 2))

    rows = sorted(
        pq.read_table(trial.folder / "out").select(["id", "buyer", "price"]).to_pylist(), key=itemgetter("id")
    )
    assert rows == [{"id": i, "buyer": "a", "price": NEW["price"]} for i in range(100)]


def test_validate_shows_the_columns(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    topic = broker.topic("avro_shown")
    registry.register(f"{topic}-value", FIRST)
    shown = CliRunner().invoke(app, ["validate", str(spec(tmp_path, broker, registry.url, topic))])
    assert shown.exit_code == 0
    columns = "id INT NOT NULL, customer STRING NOT NULL, price DECIMAL(9, 2) NOT NULL, on DATE NOT NULL"
    assert shown.stdout.splitlines()[1] == f"  i: {columns}"
