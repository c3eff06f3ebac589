"""What the client hands on is what was sent, and nothing of it is held for ever."""

import time
from collections.abc import Iterator

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from joinlib.source.kafka.client import MOST, Client, PartitionEvent
from joinlib.source.kafka.consumer import consumer_settings
from joinlib.source.kafka.messages import Message, Messages
from tests import configs
from tests.kafka.broker import Broker

END = KafkaError._PARTITION_EOF


def client(broker: Broker, **more: object) -> Client:
    connection = configs.topics("i", broker.servers, "any").spec.connection
    return Client({**consumer_settings(connection), **more}, lambda _: None)


def taken(one: Client, ends: int, headers: bool = False) -> Iterator[Messages | PartitionEvent]:
    """What comes until so many partitions have ended."""
    while ends:
        for fetched in one.fetched(MOST, 1, headers):
            if fetched.messages is not None:
                yield fetched.messages
            ends -= sum(event.error.code() == END for event in fetched.events)
            yield from fetched.events


@pytest.mark.parametrize("headers", [True, False])
def test_all_that_there_is_to_a_message(broker: Broker, headers: bool) -> None:
    """No key and an empty one, no value and an empty one, headers without a value and twice of a name."""
    topic = broker.topic(f"whole-{headers}", 2)
    sent = [
        (b"v", b"k", [("a", b"1"), ("b", None), ("a", b"")]), (None, None, []), (b"", b"", [("\u00e4" * 99, b"\xff")]),
        (b"x" * 100_000, b"y" * 1_000, []), (b"last", None, [("", b"")]),
    ]  # fmt: skip
    producer, now = Producer({"bootstrap.servers": broker.servers}), int(time.time() * 1000)
    for at, (value, key, own) in enumerate(sent):
        producer.produce(topic, value, key, partition=1, timestamp=now + at, headers=own)
    assert producer.flush(20) == 0
    one = client(broker)
    one.assign({(topic, 1): 0})
    messages, end = taken(one, 1, headers)
    assert isinstance(messages, Messages) and isinstance(end, PartitionEvent)
    assert list(messages) == [
        Message(topic, 1, at, now + at, key, value, tuple((n.encode(), v) for n, v in own if headers))
        for at, (value, key, own) in enumerate(sent)
    ]
    assert (end.error.code(), end.offset) == (END, 5)
    assert "end of partition" in str(end.error.str())
    assert one.reach((topic, 1), 5) == (0, 5)
    assert one.reach((topic, 0), 5) == (0, 0)


def test_several_partitions_at_once(broker: Broker) -> None:
    """Of two topics, from an offset on; each in its order, and by itself."""
    topics = [broker.topic(f"several-{n}", 3) for n in range(2)]
    starts = {(topic, p): n + p for n, topic in enumerate(topics) for p in range(3)}
    for topic, partition in starts:
        broker.send(topic, [b"%d" % n for n in range(5)], partition)
    one = client(broker)
    one.assign(starts)
    found: dict[tuple[str, int], list[bytes | None]] = {}
    for messages in taken(one, len(starts)):
        if isinstance(messages, Messages):
            found.setdefault((messages.topic, messages.partition), []).extend(messages.values)
    assert found == {place: [b"%d" % n for n in range(start, 5)] for place, start in starts.items()}
    one.unassign()
    assert one.fetched(1, 0.2, False) == []


def test_settings_that_are_none(broker: Broker) -> None:
    """Refused by name, at once."""
    with pytest.raises(KafkaException, match=r"no\.such\.setting"):
        client(broker, **{"no.such.setting": 1})
    with pytest.raises(KafkaException, match=r"ssl\.ca\.location"):
        client(broker, **{"security.protocol": "ssl", "ssl.ca.location": "/nowhere"})


def test_a_queue_that_was_full_is_filled_again(broker: Broker) -> None:
    """At once, though it was taken from slowly: librdkafka's own way is to look again a second later, when it is long empty."""
    topic, count, looks = broker.topic("full"), 100_000, 0
    broker.send(topic, [b"x" * 100] * count)
    small = {"queued.min.messages": 1_000, "fetch.message.max.bytes": 50_000}
    one = client(broker, **small)
    one.assign({(topic, 0): 0})
    while count:
        time.sleep(0.01)
        for fetched in one.fetched(5_000, 0.005, False):
            count -= len(fetched.messages or ())
        looks += 1
    assert looks < 300


def test_nothing_is_held_that_was_handed_on(broker: Broker) -> None:
    """Eight times over a topic of 20 MB take no more memory than twice, and a client that is let go ends its threads."""
    topic, process, sizes = broker.topic("held"), psutil.Process(), []
    broker.send(topic, [b"x" * 10_000] * 2_000)
    before = process.num_threads()
    one = client(broker)
    for _ in range(8):
        one.assign({(topic, 0): 0})
        assert sum(len(m) for m in taken(one, 1) if isinstance(m, Messages)) == 2_000
        sizes.append(process.memory_info().rss >> 20)
    assert sizes[-1] - sizes[1] < 60
    assert process.num_threads() > before
    del one
    assert process.num_threads() == before
