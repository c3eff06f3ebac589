"""What a topic holds and what comes out of it, without Spark: discover, slices, rows."""

import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from joinlib.errors import InputError
from joinlib.source import RowChanges, Slice, StreamInput, fetch_ahead, make
from joinlib.source.kafka.consumer import SharedConsumer
from joinlib.spec import ddl
from tests import configs
from tests.kafka.broker import Broker

SCHEMA = ddl.parse("a BIGINT")
Rows = list[int | None]


def opened(folder: Path, servers: str, *topics: str, schema: Any = SCHEMA, **more: Any) -> StreamInput:
    """An input over topics; opened again over the same folder it goes on where it was."""
    return make("i", configs.topics("i", servers, *topics, **more), schema, folder)


def read(input: StreamInput, slices: list[Slice]) -> Rows:
    return [a for batch in input.reader.read_many(slices, ["a"]) for a in batch.column("a").to_pylist()]


def rest(input: StreamInput, start: int = 0) -> Rows:
    """All that is there from a slice on."""
    return read(input, input.slices(start, input.discover()))


def objects(*numbers: int) -> list[bytes | None]:
    return [b'{"a":%d}' % n for n in numbers]


def test_a_topic_that_grows_and_gains_partitions(broker: Broker, tmp_path: Path) -> None:
    """What is there later comes later, from new partitions as well, and a restart changes nothing."""
    topic = broker.topic("grows", 1)
    one = opened(tmp_path, broker.servers, topic)
    assert one.discover() == 0
    assert not (tmp_path / "i.jsonl").read_text().count("cut")
    broker.send(topic, objects(1, 2))
    assert rest(one) == [1, 2]
    read_so_far = one.discover()
    size = (tmp_path / "i.jsonl").stat().st_size

    broker.partitions(topic, 3)
    broker.send(topic, objects(3), partition=2)
    again = opened(tmp_path, broker.servers, topic)

    assert (tmp_path / "i.jsonl").stat().st_size == size
    assert rest(again, read_so_far) == [3]
    assert read(again, again.slices(0, read_so_far)) == [1, 2]


def test_latest_begins_behind_what_is_there(broker: Broker, tmp_path: Path) -> None:
    """And everything from then on is read."""
    topic = broker.topic("latest", 2)
    broker.send(topic, objects(1), partition=1)
    one = opened(tmp_path, broker.servers, topic, starting_offsets="latest")
    assert one.discover() == 0
    broker.send(topic, objects(2), partition=1)
    assert rest(opened(tmp_path, broker.servers, topic, starting_offsets="latest")) == [2]


def test_aborted_and_open_transactions_are_not_seen(broker: Broker, tmp_path: Path) -> None:
    """Committed messages come once their transaction is; markers and aborted messages leave gaps that end no slice early."""
    topic = broker.topic("transactions")
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": "t"})
    producer.init_transactions(20)
    one = opened(tmp_path, broker.servers, topic)
    for number, keep in ((1, True), (2, False), (3, True), (4, False)):
        producer.begin_transaction()
        for value in objects(number, 10 * number):
            producer.produce(topic, value)
        producer.flush()
        open_yet = rest(one)
        assert number not in open_yet
        (producer.commit_transaction if keep else producer.abort_transaction)(20)

    assert rest(one) == [1, 10, 3, 30]
    # Of these offsets four are markers, four aborted.
    assert sum(s.weight for s in one.slices(0, one.discover())) == 12


def test_tombstones_and_keys(broker: Broker, tmp_path: Path) -> None:
    """A message without a value is no row; a null key is NULL."""
    topic = broker.topic("tombstones")
    broker.send(topic, [*objects(1), None, *objects(2)])
    broker.send(topic, objects(3), key=b"k", headers=[("h", b"v")])
    schema = ddl.parse("a BIGINT, k STRING, n BIGINT, h ARRAY<STRUCT<key: STRING, value: BINARY>>")
    filled = {"key": "k", "offset": "n", "headers": "h"}
    one = opened(tmp_path, broker.servers, topic, schema=schema, metadata=filled)
    ranges = one.slices(0, one.discover())
    for ahead in (False, True):
        if ahead:
            fetch_ahead([(one.reader.config, ranges)])  # type: ignore[attr-defined]
        batches = list(one.reader.read_many(ranges, ["a", "n", "k", "h"]))
        rows = [tuple(r.values()) for b in batches for r in b.to_pylist()]
        assert rows == [(1, 0, None, []), (2, 2, None, []), (3, 3, "k", [{"key": "h", "value": b"v"}])]


def test_a_tombstone_deletes_its_key(broker: Broker, tmp_path: Path) -> None:
    """In its place among the rows, where the input is an upsert; a bad one is kept with its reason."""
    topic = broker.topic("upserts")
    for value, key in (
        (b'{"a":1,"t":"x"}', b"1"),
        (None, b"1"),
        (b'{"a":2,"t":"y"}', b"2"),
        (None, b"two"),
        (None, b"2"),
    ):
        broker.send(topic, [value], key=key, headers=[("from", key)])
    letters = tmp_path / "bad"
    config = configs.topics(
        "i", broker.servers, topic, changes=RowChanges(None, ("a",)), on_bad_message="deadLetter",
        dead_letters={"path": letters},
    )  # fmt: skip
    one = make("i", config, ddl.parse("a BIGINT, t STRING"), tmp_path)
    letters.mkdir()
    batches = list(one.reader.read_many(one.slices(0, one.discover()), ["t", "a"]))
    rows = [tuple(r.values()) for b in batches for r in b.to_pylist()]
    assert rows == [("x", 1, 1), (None, 1, -1), ("y", 2, 1), (None, 2, -1)]
    (letter,) = pq.read_table(letters).to_pylist()
    assert (letter["key"], letter["value"]) == (b"two", None)
    assert letter["headers"] == [{"key": "from", "value": b"two"}]
    assert letter["error"].startswith("deletes by a key that is not the text, JSON array or JSON object")
    assert one.reader.bad == 1


def test_messages_that_expired(broker: Broker, tmp_path: Path) -> None:
    """Gone before they were noticed, or before they were read: an error that says so, or the rest, as asked for."""
    topic = broker.topic("expired")
    broker.send(topic, objects(1, 2, 3, 4, 5))
    kept, lenient = (
        opened(tmp_path / mode, broker.servers, topic, on_missing_offsets=mode) for mode in ("fail", "reset")
    )
    for one in (kept, lenient):
        assert one.discover() == 1
    broker.forget(topic, 0, 2)
    assert rest(lenient) == [3, 4, 5]
    with pytest.raises(InputError, match=r"expired, partition 0: messages from offset 0 on are gone .*reset"):
        rest(kept)

    broker.send(topic, objects(6, 7, 8))
    broker.forget(topic, 0, 7)

    with pytest.raises(InputError, match="from offset 5 on expired before they were read"):
        kept.discover()
    assert rest(lenient, 1) == [8]
    assert lenient.lag(0)["lost"] == 2
    assert rest(lenient) == [8]


@pytest.mark.parametrize("count", [1, 3, 50])
def test_a_topic_that_was_made_again(broker: Broker, tmp_path: Path, count: int) -> None:
    """Offsets of the old one mean nothing in it, also where it has grown beyond them: it is known by its id."""
    topic = broker.topic(f"again{count}", 1)
    broker.send(topic, objects(1, 2, 3))
    read_so_far = opened(tmp_path, broker.servers, topic).discover()
    broker.drop(topic)
    broker.topic(topic, 1)
    fresh = list(range(100, 100 + count))
    broker.send(topic, objects(*fresh))

    with pytest.raises(InputError, match="was deleted and created again"):
        opened(tmp_path, broker.servers, topic).discover()
    assert rest(opened(tmp_path, broker.servers, topic, on_missing_offsets="reset"), read_so_far) == fresh
    assert opened(tmp_path, broker.servers, topic).discover() == read_so_far + 1


def test_large_messages(broker: Broker, tmp_path: Path) -> None:
    """One that is larger than a fetch comes as well; slices are cut smaller where messages are large."""
    topic = broker.topic("large", max_message_bytes=str(20 << 20))
    values = [b'{"a":%d,"t":"%s"}' % (i, b"x" * (9 << 20)) for i in range(3)]
    producer = Producer({"bootstrap.servers": broker.servers, "message.max.bytes": 20 << 20})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    one = opened(tmp_path, broker.servers, topic)
    assert one.discover() == 3
    assert rest(one) == [0, 1, 2]


def test_ranges_in_any_order(broker: Broker, tmp_path: Path) -> None:
    """What was fetched ahead for one range never shows up in the next, backwards, forwards or in another partition."""
    topic = broker.topic("ranges", 2)
    for partition in range(2):
        broker.send(topic, objects(*range(partition * 100_000, partition * 100_000 + 30_000)), partition)
    one = opened(tmp_path, broker.servers, topic)
    draw = random.Random(3)
    for _ in range(60):
        partition, start = draw.randrange(2), draw.randrange(29_999)
        stop = min(start + draw.randrange(1, 3_000), 30_000)
        found = read(one, [Slice(0, None, 1, path=topic, group=partition, start=start, stop=stop)])
        assert found == list(range(partition * 100_000 + start, partition * 100_000 + stop))


def test_ranges_that_were_fetched_ahead(broker: Broker, tmp_path: Path) -> None:
    """Several partitions at once, then read in any order: some not at all, some twice, some from elsewhere."""
    names = [broker.topic(f"ahead{n}", 2) for n in range(2)]
    places = [(name, partition) for name in names for partition in range(2)]
    for number, (name, partition) in enumerate(places):
        broker.send(name, objects(*range(number * 100_000, number * 100_000 + 5_000)), partition)
    one = opened(tmp_path, broker.servers, *names)
    draw = random.Random(5)
    for _ in range(40):
        ranges = []
        for name, partition in draw.sample(places, draw.randint(1, 4)):
            start = draw.randrange(4_999)
            stop = min(start + draw.randrange(1, 900), 5_000)
            ranges.append(Slice(0, None, 1, path=name, group=partition, start=start, stop=stop))
        fetch_ahead([(one.reader.config, ranges)])  # type: ignore[attr-defined]
        asked = [*ranges[draw.randrange(2) :], draw.choice(ranges)]
        draw.shuffle(asked)
        for s in asked:
            begun = s.start if draw.random() < 0.9 else s.stop - 1
            first = places.index((s.path, s.group)) * 100_000
            found = read(one, [replace(s, start=begun)])
            assert found == list(range(first + begun, first + s.stop))


def test_what_expired_is_noticed_in_its_turn(broker: Broker, tmp_path: Path) -> None:
    """Fetched ahead with others, which come all the same; and then by itself."""
    topic = broker.topic("expired-ahead", 3)
    for partition in range(3):
        broker.send(topic, objects(*range(10 * partition, 10 * partition + 5)), partition)
    kept, lenient = (
        opened(tmp_path / mode, broker.servers, topic, on_missing_offsets=mode) for mode in ("fail", "reset")
    )
    ranges = [Slice(0, None, 1, path=topic, group=partition, start=0, stop=5) for partition in range(3)]
    broker.forget(topic, 1, 2)
    for _ in range(2):
        fetch_ahead([(lenient.reader.config, ranges)])  # type: ignore[attr-defined]
        assert [read(lenient, [s]) for s in ranges] == [[0, 1, 2, 3, 4], [12, 13, 14], [20, 21, 22, 23, 24]]
        fetch_ahead([(kept.reader.config, ranges)])  # type: ignore[attr-defined]
        assert read(kept, ranges[:1]) == [0, 1, 2, 3, 4]
        with pytest.raises(InputError, match=r"partition 1: messages from offset 0 on are gone"):
            read(kept, ranges[1:2])
        assert read(kept, ranges[2:]) == [20, 21, 22, 23, 24]


@pytest.mark.parametrize("mode", ["fail", "reset"])
def test_messages_that_only_seemed_gone(broker: Broker, mode: str) -> None:
    """A broker that says so and has them a moment later costs nothing: neither messages nor the job."""
    topic = broker.topic(f"seemed-gone-{mode}")
    broker.send(topic, objects(0))
    shared = SharedConsumer(configs.topics("i", broker.servers, topic).spec.connection)
    real = shared.client.reach

    def late(*asked: Any) -> tuple[int, int]:
        broker.send(topic, objects(1, 2, 3, 4))
        return real(*asked)

    shared.client.reach = late  # type: ignore[method-assign]
    found = [m.value for part in shared.messages((topic, 0), 2, 4, mode == "reset", False) for m in part]
    assert found == objects(2, 3)


def test_several_topics(broker: Broker, tmp_path: Path) -> None:
    """Of the same columns, as one input."""
    for name, number in (("one", 1), ("two", 2)):
        broker.send(broker.topic(name), objects(number))
    assert sorted(rest(opened(tmp_path, broker.servers, "one", "two"))) == [1, 2]


def test_a_broker_that_is_killed_while_it_is_read(own_broker: Broker, tmp_path: Path) -> None:
    """It comes back, and every message is read once."""
    count = 300_000
    topic = own_broker.topic("restart", 2)
    for partition in range(2):
        own_broker.send(topic, objects(*range(partition, count, 2)), partition)
    one = opened(tmp_path, own_broker.servers, topic)
    batches = one.reader.read_many(one.slices(0, one.discover()), ["a"])
    found = next(batches).column("a").to_pylist()

    own_broker.kill()
    later = threading.Timer(2, own_broker.start)
    later.start()
    for batch in batches:
        found += batch.column("a").to_pylist()
    later.join()

    assert sorted(found) == list(range(count))
    assert one.discover() == one.discover()


def test_a_broker_that_stays_away(
    own_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the end an error says which broker and what is missing; a job that begins says so sooner."""
    topic = own_broker.topic("away")
    own_broker.send(topic, objects(*range(10)))
    one = opened(tmp_path, own_broker.servers, topic)
    slices = one.slices(0, one.discover())
    own_broker.kill()
    monkeypatch.setattr("joinlib.source.kafka.consumer.RETRY_S", 3)
    monkeypatch.setattr("joinlib.source.kafka.brokers.RETRY_S", 3)
    monkeypatch.setattr("joinlib.source.kafka.brokers.PATIENCE_S", 3)
    for act in (
        lambda: read(one, slices),
        one.discover,
        opened(tmp_path / "new", own_broker.servers, topic).discover,
    ):
        with pytest.raises(InputError, match=r"kafka 127\.0\.0\.1:\d+: .*away.*(refused|failed|down)"):
            act()


def test_topics_that_are_not_there(broker: Broker, tmp_path: Path) -> None:
    """At once, by name."""
    with pytest.raises(InputError, match=r"nowhere.*create the topic, or correct its name"):
        opened(tmp_path, broker.servers, "nowhere").discover()
