"""Messages that cannot be decoded, and rows of others that fail, in every format: letters with their places; without Spark.

Each batch runs twice, in two partitions or as one task; readers see it once.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib import registered
from joinlib.sink.kafka.topic import reached
from tests.kafka import test_protobuf
from tests.kafka.broker import Broker
from tests.kafka.registry import Registry
from tests.kafka.test_avro import message
from tests.laws.document import HEAD
from tests.laws.harness import SMALL
from tests.laws.product import Course, own_folder
from tests.laws.test_small_batches import Alternating, holds, letters
from tests.unit.source.protobuf.shapes import files

SQL = "SELECT o.id, o.name, p.amount FROM orders o JOIN payments p ON o.id = p.id WHERE 12 / p.amount > 1"
ORDERS = [(n, f"n{n}") for n in range(4)]
FAILS = (3, 0)  # of a payment: by zero nothing is divided
PAYMENT = {
    "type": "record",
    "name": "Payment",
    "fields": [{"name": "id", "type": "long"}, {"name": "amount", "type": "long"}],
}
PROTO_PAYMENT = 'syntax = "proto3"; message Payment { int64 id = 1; int64 amount = 2; }'
PROTO = files(PROTO_PAYMENT)
Row = tuple[int, int]
Place = tuple[str, str, int, int, str]
OLDER = {"onBadMessage": "deadLetter", "deadLetters": {"path": "bad"}}
CASES: list[tuple[str, dict[str, Any]]] = [
    *((format, {}) for format in ("json", "csv", "arrow", "avro", "protobuf")),
    ("json", OLDER),
    ("avro", OLDER),
    ("csv", {"onBadMessage": "skip"}),
]


def stream(rows: Sequence[Row]) -> bytes:
    """A message in the Arrow format."""
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("id", "amount"))})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return bytes(out.getvalue())


def sound(format: str, rows: Sequence[Row], schema: int) -> list[bytes]:
    """Rows as messages: one each, or one in all."""
    if format == "arrow":
        return [stream(rows)]
    named = [{"id": id, "amount": amount} for id, amount in rows]
    match format:
        case "json":
            return [json.dumps(row).encode() for row in named]
        case "csv":
            return [f"{id},{amount}".encode() for id, amount in rows]
    return [_registered(format, schema, row) for row in named]


def _registered(format: str, schema: int, row: dict[str, int]) -> bytes:
    """A row as a message with the id of its schema."""
    if format == "avro":
        return message(schema, PAYMENT, row)
    return test_protobuf.message(schema, PROTO, name="Payment", **row)


def unsound(format: str, schema: int) -> list[bytes]:
    """Messages that cannot be decoded."""
    if format == "json":
        return [b"no", b"[1]", b'{"id":1', b'"amount":1}', b'{"id":"x"}', b"\xff\0", b"null"]
    if format == "csv":
        return [b"1,2,3", b"x,2", b'"1,2', b"1,2\n3,4", b"1", b"\xff,\0"]
    (whole,) = sound(format, [(1, 2)], schema)
    if format == "arrow":
        return [b"no", whole[:-40], whole.replace(b"amount", b"amoung"), b"\xff\0"]
    other = _registered(format, 99_999, {"id": 1, "amount": 2})  # the registry does not know it
    return [whole[5:], other, whole[:-1], whole[:3], whole + b"\0", whole[:5]]


def spec(folder: Path, broker: Broker, topic: str, format: str, **kafka: Any) -> Path:
    """The file of the job; with format debezium its rows change, and so do those of the result."""
    by_key = {"upsert": {"key": ["id"]}} if format == "debezium" else {}
    of = {"bootstrapServers": broker.servers, "topic": topic, "format": format, **kafka}
    given = {
        "inputs": {
            "orders": {"schema": "id BIGINT, name STRING", "files": {"path": "orders", "format": "csv"}},
            "payments": {
                "schema": "id BIGINT, amount BIGINT",
                "onError": "deadLetter",
                "kafka": of,
                **by_key,
            },
        },
        "sql": SQL,
        "output": {"files": {"path": "out"}, "mode": "changelog" if by_key else "append"},
        "checkpoint": {"path": "checkpoint", "sync": False},
        "deadLetters": {"path": "dead"},
        "join": {"units": 4},
    }
    (folder / "orders").mkdir()
    (folder / "orders/1.csv").write_text("\n".join(["id,name", *(f"{n},{name}" for n, name in ORDERS), ""]))
    file = folder / "job.yaml"
    file.write_text(json.dumps({**HEAD, "spec": given}))
    return file


@pytest.mark.parametrize(
    ("format", "kafka"),
    CASES,
    ids=[f"{format}-{kafka.get('onBadMessage', 'fail')}" for format, kafka in CASES],
)
def test_messages_among_others(
    broker: Broker, request: pytest.FixtureRequest, format: str, kafka: dict[str, Any]
) -> None:
    """Each is kept once and where the spec says; the result is that of the others."""
    topic, schema, more = broker.topic(f"letters_{format}_{len(kafka)}", 2), 0, dict(kafka)
    if format in ("avro", "protobuf"):
        registry: Registry = request.getfixturevalue("registry")
        given = PAYMENT if format == "avro" else PROTO_PAYMENT
        schema, more["registry"] = registry.register(f"{topic}-value", given), {"url": registry.url}
    bad = unsound(format, schema)
    unreadable: list[Place] = []
    failing: list[Place] = []
    offsets, paid = [0, 0], list[Row]()
    with own_folder() as folder:
        document = registered.load(spec(folder, broker, topic, format, **more))
        run = Alternating(document, SMALL, Course((2,), twice=frozenset({0, 1}), restart=frozenset({1})))
        for half in (bad[::2], bad[1::2]):
            for partition in (0, 1):
                rows = [(n, n + 1 + partition) for n in range(4)]
                some = sound(format, [rows[1], FAILS, rows[2]], schema)
                new = [*half, *some, *half[:1], *sound(format, rows[::3], schema)]
                broker.send(topic, new, partition)
                paid += rows
                for offset, value in enumerate(new, offsets[partition]):
                    at = topic, partition, offset
                    if value in half:
                        unreadable.append(("unreadable", *at, value.decode(errors="backslashreplace")))
                    elif value is some[len(some) // 2]:
                        failing.append(("expression", *at, json.dumps(dict(zip(("id", "amount"), FAILS)))))
                offsets[partition] += len(new)
            run.renew()
            list(run.batches())
        assert run.batch == 2
        assert answer(folder) == expected(paid)
        found = sorted(map(place, letters(folder)))
        assert found == sorted([*failing, *(() if kafka else unreadable)])
        assert kept(folder) == (sorted(unreadable) if kafka == OLDER else [])
        assert run.figures.bad == (0, len(unreadable))
        assert sum(run.figures.dead.values()) == len(found)


class Sending(Alternating):
    """One of whose outputs is a topic."""

    def __init__(self, *job: Any) -> None:
        super().__init__(*job)
        sinks = [
            replace(sink, kafka=reached(sink.kafka, "letters", None)) if sink.kafka else sink
            for sink in self.plan.join.sinks
        ]
        self.plan = replace(self.plan, join=replace(self.plan.join, sinks=tuple(sinks)))


def test_small_batches_into_a_topic(broker: Broker) -> None:
    """Among others, by paths, and into files as well."""
    topic = broker.topic("letters_small", 2)
    target = {"kafka": {"bootstrapServers": broker.servers, "topic": topic}}

    def each() -> Counter[Any]:
        return Counter(tuple(json.loads(seen.value or b"").values()) for seen in broker.read(topic))

    with own_folder() as folder:
        holds(folder, Sending, 0, {"each": target}, each)


def place(one: dict[str, Any]) -> Place:
    """What tells a letter from others."""
    assert one["input"] == "payments"
    text = json.dumps(one["row"]) if one["text"] is None else one["text"]
    return one["reason"], one["file"], one["partition"], one["at"], text


def kept(folder: Path) -> list[Place]:
    """What onBadMessage has kept."""
    found = pq.read_table(folder / "bad").to_pylist() if (folder / "bad").exists() else []
    return sorted(
        ("unreadable", m["topic"], m["partition"], m["offset"], m["value"].decode(errors="backslashreplace"))
        for m in found
    )


def answer(folder: Path) -> Counter[Any]:
    return Counter(
        duckdb.sql(f"FROM read_parquet('{folder}/out/batch=*/*.parquet', hive_partitioning=false)").fetchall()
    )


def expected(paid: Sequence[Row]) -> Counter[Any]:
    """DuckDB's answer over the rows that do not fail."""
    db = duckdb.connect()
    db.execute(
        "CREATE TABLE orders (id BIGINT, name VARCHAR); CREATE TABLE payments (id BIGINT, amount BIGINT)"
    )
    db.executemany("INSERT INTO orders VALUES (?, ?)", ORDERS)
    db.executemany("INSERT INTO payments VALUES (?, ?)", list(paid))
    return Counter(db.sql(SQL).fetchall())
