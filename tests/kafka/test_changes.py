"""Results that change, in a real topic: what readers of committed messages build of them, and in which order."""

from typing import Any

import orjson
import pyarrow as pa
import pytest

from joinlib.model.tuning import Tuning
from joinlib.sink.config import SinkConfig
from joinlib.sink.kafka import producer
from joinlib.sink.sink import open_sink
from joinlib.spec.output import Mode
from joinlib.worker import Worker, using
from tests.configs import results
from tests.kafka.broker import Broker

pytestmark = pytest.mark.timeout(120)
MANY = 3000


def send(
    broker: Broker, topic: str, mode: Mode, batch: int, changes: list[tuple[int, str, int]], **more: Any
) -> list[dict[str, Any]]:
    """One task of a batch; two rows for the page of the run."""
    k, v, w = zip(*changes, strict=True)
    frame = pa.record_batch({"k": pa.array(k), "v": list(v), "$weight": pa.array(w)})
    to = results(broker.servers, topic, job=topic, mode=mode, key=("k",), **more)
    config = SinkConfig("kafka", mode, ("k",), kafka=to, show=2)
    sink = open_sink(config, frame.schema.remove(2), Tuning(), partition=0, batch=batch, attempt=0)
    sink.write(frame)
    _, shown = sink.next_unit()
    sink.close()
    return pa.ipc.open_stream(shown).read_all().to_pylist() if shown else []


def test_a_compacted_reader_builds_the_table(broker: Broker) -> None:
    """By the last message of each key; a batch that runs again changes nothing."""
    topic = broker.topic("compacted", 3)
    batches = [
        [(k, "first", 1) for k in range(50)],
        [*((k, "first", -1) for k in range(20)), *((k, "second", 1) for k in range(10))],
        [(5, "second", -1), (15, "third", 1)],
    ]
    shown = []
    for number, changes in enumerate(batches):
        with using(Worker()):
            shown.append(send(broker, topic, "upsert", number, changes))
    assert [{row["v"] for row in rows} for rows in shown] == [{"first"}, {"second"}, {"third"}]
    with using(Worker()):
        send(broker, topic, "upsert", 2, batches[2])
    table: dict[int, str] = {}
    for seen in broker.read(topic):
        k = int(seen.key or b"")
        table.pop(k, None)
        if seen.value is not None:
            table[k] = orjson.loads(seen.value)["v"]
    assert table == {
        **{k: "second" for k in range(10) if k != 5},
        15: "third",
        **dict.fromkeys(range(20, 50), "first"),
    }
    assert len(broker.read(topic)) == 50 + 20 + 2


def test_updates_stay_in_order(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row before an update is right before the one after it, although the queue is full most of the time."""
    monkeypatch.setattr(producer, "_QUEUE", 7)
    monkeypatch.setattr(producer, "_AGAIN_S", 0.001)
    topic = broker.topic("ordered", 2)
    changes = [*((k, "old", -1) for k in range(MANY)), *((k, "new", 1) for k in range(MANY))]
    with using(Worker()):
        send(broker, topic, "changelog", 0, changes)
    told = [orjson.loads(seen.value or b"") for seen in broker.read(topic)]
    assert len(told) == 2 * MANY
    for before, after in zip(told[::2], told[1::2], strict=True):
        assert (before["_change_type"], after["_change_type"]) == ("update_preimage", "update_postimage")
        assert before["k"] == after["k"]


def test_the_envelopes_of_debezium(broker: Broker) -> None:
    """With the number of their batch, and a tombstone behind a row that is gone."""
    topic = broker.topic("envelopes")
    send(broker, topic, "upsert", 0, [(1, "a", 1)], format="debezium")
    send(broker, topic, "upsert", 1, [(1, "a", -1), (1, "b", 1)], format="debezium")
    (gone,) = send(broker, topic, "upsert", 2, [(1, "b", -1)], format="debezium")
    assert (gone["v"], gone["_change_type"]) == ("b", "delete")
    seen = broker.read(topic)
    assert {s.key for s in seen} == {b'{"k":1}'}
    told = [orjson.loads(s.value) if s.value else None for s in seen]
    assert [t and (t["op"], t["source"]["batch"]) for t in told] == [("c", 0), ("u", 1), ("d", 2), None]
