"""Protobuf from a real broker by the schemas of a real registry; the official runtime writes the messages."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from google.protobuf.message_factory import GetMessageClass
from typer.testing import CliRunner

from jobs.cli.commands import app
from joinlib import registered
from joinlib.compiled import compiled
from joinlib.errors import InputError, NotReady, SpecError
from joinlib.source.protobuf.schema import ProtoSchema
from tests.kafka import test_avro
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.kafka.test_avro import opened, rest
from tests.kafka.test_avro_keys import changing
from tests.spark.trial import Trial
from tests.unit.source.protobuf.shapes import files

FIRST = """
syntax = "proto3";
package shop;
message Order {
  int32 id = 1;
  string customer = 2;
  uint64 cents = 3;
  State state = 4;
}
enum State { OPEN = 0; PAID = 1; }
message Cart { string owner = 1; message Line { int64 id = 1; } }
"""
SECOND = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int32 id = 1;
  string buyer = 2;
  uint64 cents = 3;
  State state = 4;
  google.protobuf.Timestamp at = 5;
  optional string note = 6;
  map<string, int32> tags = 7;
  repeated double weights = 8;
}
enum State { OPEN = 0; PAID = 1; SENT = 2; }
message Cart { string owner = 1; message Line { int64 id = 1; } }
"""
OLD, NEW = files(FIRST), files(SECOND)
AT = datetime(2026, 1, 2, 3, tzinfo=UTC)


def message(
    schema: int, of: ProtoSchema, indexes: bytes = b"\0", name: str = "shop.Order", **fields: Any
) -> bytes:
    """A message as Confluent's serializer writes it; `indexes`: which type it is."""
    return (
        b"\0"
        + schema.to_bytes(4, "big")
        + indexes
        + GetMessageClass(of.named(name))(**fields).SerializeToString()
    )


def spec(
    folder: Path, broker: Broker, url: str, topic: str, columns: str = "fromRegistry", **kafka: Any
) -> Path:
    given = {"format": "protobuf", "registry": {"url": url}, **kafka}
    return test_avro.spec(folder, broker, url, topic, columns, **given)


def test_schemas_that_evolve_within_a_topic(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """A renamed field is the same one; later, with the registry gone, the same rows come again."""
    topic = broker.topic("protobuf_evolves")
    first, second = (registry.register(f"{topic}-value", text) for text in (FIRST, SECOND))
    new = {
        "id": 2,
        "buyer": "b",
        "cents": 2**64 - 1,
        "state": "SENT",
        "note": "",
        "tags": {"a": 1},
        "weights": [0.5],
    }
    broker.send(
        topic,
        [
            message(first, OLD, id=1, customer="a", cents=150, state="PAID"),
            message(second, NEW, at=AT, **new),
            message(first, OLD, b"\2\0"),  # the first type, in two numbers
        ],
    )

    file = spec(tmp_path, broker, registry.url, topic, metadata={"offset": "at_offset"})
    rows = rest(opened(file))

    none = {"at": None, "note": None, "tags": [], "weights": []}
    assert rows == [
        {"id": 1, "buyer": "a", "cents": Decimal(150), "state": "PAID", **none, "at_offset": 0},
        {**new, "cents": Decimal(2**64 - 1), "at": AT, "tags": [("a", 1)], "at_offset": 1},
        {"id": 0, "buyer": "", "cents": Decimal(0), "state": "OPEN", **none, "at_offset": 2},
    ]
    registry.register(f"{topic}-value", SECOND.replace("buyer", "who"))  # the job keeps its columns
    assert (
        rest(opened(spec(tmp_path, broker, "http://127.0.0.1:9", topic, metadata={"offset": "at_offset"})))
        == rows
    )


def test_declared_columns(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """They may be fewer and wider; what cannot be read as them is refused before anything runs."""
    topic = broker.topic("protobuf_declared")
    id = registry.register(f"{topic}-value", FIRST)
    broker.send(topic, [message(id, OLD, id=1, customer="a", cents=7)])

    assert rest(
        opened(spec(tmp_path, broker, registry.url, topic, "cents BIGINT, id BIGINT, more DATE"))
    ) == [{"cents": 7, "id": 1, "more": None}]
    with pytest.raises(
        SpecError, match=r"avro.yaml: spec.inputs.i.schema: .*field 'customer' is string.*int64; declare"
    ):
        opened(spec(tmp_path, broker, registry.url, topic, "customer BIGINT"))
    with pytest.raises(SpecError, match=r"has no field 'other', which is declared NOT NULL"):
        opened(spec(tmp_path, broker, registry.url, topic, "other BIGINT NOT NULL"))
    with pytest.raises(SpecError, match=r"no message type shop.Nobody.*there: shop.Order, shop.Cart"):
        opened(
            spec(
                tmp_path,
                broker,
                registry.url,
                topic,
                registry={"url": registry.url, "message": "shop.Nobody"},
            )
        )


def test_several_types_in_a_schema(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """One is read, by its name; messages of the others are bad."""
    topic = broker.topic("protobuf_types")
    id = registry.register(f"{topic}-value", FIRST)
    inner, cart, order = (
        message(id, OLD, b"\4\2\0", "shop.Cart.Line", id=5),
        message(id, OLD, b"\2\2", "shop.Cart", owner="o"),
        message(id, OLD, id=1),
    )
    broker.send(topic, [inner, cart, order, inner])

    def read(name: str) -> list[dict[str, Any]]:
        given = {"url": registry.url, "message": name}
        return rest(opened(spec(tmp_path, broker, registry.url, topic, registry=given, onBadMessage="skip")))

    assert read("shop.Cart.Line") == [{"id": 5}, {"id": 5}]
    assert read("shop.Cart") == [{"owner": "o"}]


def test_schemas_that_refer_to_others(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    topic = broker.topic("protobuf_refers")
    money = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
    bill = 'syntax = "proto3"; package shop; import "shop/money.proto"; message Bill { Money sum = 1; }'
    registry.register("protobuf-money", money)
    referred = [{"name": "shop/money.proto", "subject": "protobuf-money", "version": 1}]
    id = registry.register(f"{topic}-value", bill, referred)
    broker.send(
        topic, [message(id, files(bill, ("shop/money.proto", money)), name="shop.Bill", sum={"units": 5})]
    )

    assert rest(opened(spec(tmp_path, broker, registry.url, topic))) == [{"sum": {"units": 5}}]


def test_messages_that_cannot_be_read(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Each stops the job with its place, or is kept as a dead letter; the others are read."""
    topic = broker.topic("protobuf_bad")
    id = registry.register(f"{topic}-value", FIRST)
    avro = registry.register("protobuf-elsewhere", test_avro.FIRST)
    texts = FIRST.replace("int32 id", "string id")
    other = registry.register("protobuf-texts", texts)
    good = message(id, OLD, id=1, customer="abc")
    bad = {
        b"\1" + good[1:]: "does not begin with a zero byte",
        b"\0\0": "does not begin with a zero byte",
        good[:5]: "does not say, behind the number of its schema, which message type",
        good[:5]
        + b"\xff" * 9
        + good[6:]: "does not say, behind the number of its schema, which message type",
        good[:5] + b"\2\x10" + good[6:]: f"schema {id}: it has no message type at 8",
        good[:5]
        + b"\2\2"
        + good[6:]: f"schema {id}: its message is a shop.Cart, but the columns are those of a shop.Order",
        message(99_999, OLD, id=1): "schema 99999 of registry .* is not known",
        message(avro, OLD, id=1): "is of type AVRO; format: protobuf reads Protobuf alone",
        good[:-1]: "is not what its schema says",
        good + b"\0": "is not what its schema says",
        message(id, OLD, cents=2**63): "declare DECIMAL",
        good + b"\x20\x09": "holds a number that is no name of enum shop.State",
        message(other, files(texts), id="x"): "field 'id' is string",
    }
    broker.send(topic, [good, *bad, good])
    letters = {"onBadMessage": "deadLetter", "deadLetters": {"path": "letters"}}
    columns = "id INT, customer STRING, cents BIGINT, state STRING"

    with pytest.raises(InputError, match=f"topic {topic}, partition 0, offset 1: does not begin"):
        rest(opened(spec(tmp_path, broker, registry.url, topic, columns)))
    row = {"id": 1, "customer": "abc", "cents": 0, "state": "OPEN"}
    assert rest(opened(spec(tmp_path, broker, registry.url, topic, columns, **letters))) == [row, row]

    found = pq.read_table(tmp_path / "letters").to_pylist()
    assert [f["offset"] for f in found] == [*range(1, len(bad) + 1)]
    for letter, why in zip(found, bad.values(), strict=True):
        assert re.search(why, letter["error"]), letter["error"]


def test_schemas_that_cannot_be_used(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """The job does not start."""
    topic = broker.topic("protobuf_unusable")
    registry.register(f"{topic}-value", test_avro.FIRST)
    with pytest.raises(SpecError, match=r"subject .* is of type AVRO; format: protobuf reads Protobuf alone"):
        registered.load(spec(tmp_path, broker, registry.url, topic))
    again = broker.topic("protobuf_recursive")
    registry.register(f"{again}-value", 'syntax = "proto3"; message N { int32 id = 1; N next = 2; }')
    with pytest.raises(SpecError, match=r"field 'next' holds itself \(N\), which has no column; declare"):
        registered.load(spec(tmp_path, broker, registry.url, again))
    assert registered.load(spec(tmp_path, broker, registry.url, again, "id INT")) is not None


def test_a_registry_that_does_not_answer(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """It is nobody's message that is bad, so none becomes a dead letter."""
    topic = broker.topic("protobuf_silent")
    broker.send(topic, [message(registry.register(f"{topic}-value", FIRST), OLD, id=1)])
    letters = {"onBadMessage": "deadLetter", "deadLetters": {"path": "letters"}}
    opened(
        spec(tmp_path, broker, registry.url, topic)
    ).discover()  # the reader's schema is kept, and no other

    with pytest.raises(NotReady, match=r"registry http://127\.0\.0\.1:9: no answer"):
        rest(opened(spec(tmp_path, broker, "http://127.0.0.1:9", topic, **letters)))
    assert not (tmp_path / "letters").exists()


KEY = 'syntax = "proto3"; package shop; message Key { int64 id = 1; string part = 2; }'
RENAMED = KEY.replace("string part", "string area")


def test_keys_as_columns(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Each by its own schema; the job goes on as it was begun, also with the registry gone."""
    topic = broker.topic("protobuf_keys")
    value, key = registry.register(f"{topic}-value", FIRST), registry.register(f"{topic}-key", KEY)
    one = message(key, files(KEY), name="shop.Key", id=1, part="x")
    broker.send(topic, [message(value, OLD, id=1), None], key=one)
    broker.send(topic, [message(value, OLD, id=2)])

    def read(url: str = registry.url) -> list[Any]:
        file = spec(tmp_path, broker, url, topic, keyFormat="protobuf", metadata={"key": "k"})
        return [(row["id"], row["k"]) for row in rest(opened(file))]

    found = [(1, {"id": 1, "part": "x"}), (2, None)]
    assert read() == found
    renamed = registry.register(f"{topic}-key", RENAMED)
    broker.send(
        topic, [message(value, OLD, id=3)], key=message(renamed, files(RENAMED), name="shop.Key", area="y")
    )
    registry.register(f"{topic}-key", RENAMED.replace("}", "bool more = 3; }"))
    assert read() == [*found, (3, {"id": 0, "part": "y"})]
    assert read("http://127.0.0.1:9") == [*found, (3, {"id": 0, "part": "y"})]

    with pytest.raises(
        SpecError, match=r"schema of subject .*-key: shop.Key has no field 'customer'; its fields"
    ):
        opened(changing(spec(tmp_path, broker, registry.url, topic, keyFormat="protobuf"), "customer"))


@pytest.mark.spark
def test_a_join_of_protobuf_through_spark(broker: Broker, registry: Registry, trial: Trial) -> None:
    """Rows of two schemas of one topic are joined, in processes of Spark's, with the columns of the registry."""
    topic = broker.topic("protobuf_joined", 2)
    first, second = (registry.register(f"{topic}-value", text) for text in (FIRST, SECOND))
    broker.send(topic, [message(first, OLD, id=i, customer="a") for i in range(100)], 0)
    broker.send(topic, [message(second, NEW, id=i, cents=i, at=AT) for i in range(100)], 1)
    file = spec(trial.folder, broker, registry.url, topic)
    given = json.loads(file.read_text())
    given["spec"]["inputs"]["j"] = given["spec"]["inputs"]["i"]
    given["spec"] |= {
        "sql": "SELECT i.id, i.buyer, j.cents FROM i JOIN j ON i.id = j.id AND i.at IS NULL AND j.at IS NOT NULL",
        "output": {"files": {"path": "out"}},
    }
    file.write_text(json.dumps(given))

    trial.run_plan(compiled(registered.load(file), 2))

    rows = pq.read_table(trial.folder / "out").select(["id", "buyer", "cents"]).to_pylist()
    assert sorted(rows, key=itemgetter("id")) == [
        {"id": i, "buyer": "a", "cents": Decimal(i)} for i in range(100)
    ]


def test_validate_shows_the_columns(broker: Broker, registry: Registry, tmp_path: Path) -> None:
    topic = broker.topic("protobuf_shown")
    registry.register(f"{topic}-value", SECOND)
    shown = CliRunner().invoke(app, ["validate", str(spec(tmp_path, broker, registry.url, topic))])
    assert shown.exit_code == 0
    columns = (
        "id INT NOT NULL, buyer STRING NOT NULL, cents DECIMAL(20, 0) NOT NULL, state STRING NOT NULL, at TIMESTAMP, "
        "note STRING, tags MAP<STRING, INT> NOT NULL, weights ARRAY<DOUBLE> NOT NULL"
    )
    assert shown.stdout.splitlines()[1] == f"  i: {columns}"
