"""What the producer is given is in the topic: all there is to a message, in order, by Kafka's own partitions."""

import gc

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from joinlib.broker import settings
from joinlib.sink.kafka.client import ProducerClient, Reports
from joinlib.sink.kafka.messages import Outgoing
from joinlib.sink.kafka.producer import TransactionalProducer
from joinlib.source.payloads import Payloads
from tests.configs import results
from tests.kafka.broker import Broker

PARTITIONER = {"partitioner": "murmur2_random"}


def client(broker: Broker, topic: str, reports: Reports | None = None, **more: object) -> ProducerClient:
    """One without transactions, which it has no other use for."""
    spec = results(broker.servers, topic).spec
    given = {name.replace("_", "."): value for name, value in more.items()}
    return ProducerClient({**settings(spec), **PARTITIONER, **given}, topic, reports or Reports(spec))


def outgoing(values: list[bytes | None], keys: list[bytes | None] | None = None) -> Outgoing:
    return Outgoing(None if keys is None else Payloads.of(keys), Payloads.of(values))


def test_all_that_there_is_to_a_message(broker: Broker) -> None:
    """No key and an empty one, no value and an empty one."""
    topic = broker.topic("all-of-it")
    sent = [
        (b"k", b"v"),
        (None, None),
        (b"", b""),
        (b"y" * 1_000, b"x" * 100_000),
        (b"k", None),
        (None, b"l"),
    ]
    one = client(broker, topic)
    assert one.produce(outgoing([v for _, v in sent], [k for k, _ in sent])) == len(sent)
    assert one.produce(outgoing([b"no keys"])) == 1
    assert one.flush(20) == len(one) == 0
    assert [(m.key, m.value) for m in broker.read(topic)] == [*sent, (None, b"no keys")]


def test_a_key_has_the_partition_that_it_has_with_others(broker: Broker) -> None:
    """With Java's producers, as confluent-kafka has them."""
    ours, theirs = broker.topic("ours", 7), broker.topic("theirs", 7)
    keys: list[bytes | None] = [b"%d" % n for n in range(100)]
    one = client(broker, ours)
    one.produce(outgoing([b""] * len(keys), keys))
    assert one.flush(20) == 0
    producer = Producer({"bootstrap.servers": broker.servers, **PARTITIONER})
    for key in keys:
        producer.produce(theirs, b"", key)
    assert producer.flush(20) == 0
    places = [{m.key: m.partition for m in broker.read(topic)} for topic in (ours, theirs)]
    assert places[0] == places[1]
    assert len(set(places[0].values())) == 7


def test_a_full_queue_takes_what_it_has_room_for(broker: Broker) -> None:
    """The first ones, so that what goes in later overtakes none."""
    topic = broker.topic("no-room")
    one = client(broker, topic, queue_buffering_max_messages=10, linger_ms=50)
    sent, left, tries = [b"%d" % n for n in range(25)], outgoing([b"%d" % n for n in range(25)]), 0
    while len(left):
        taken = one.produce(left)
        assert taken == min(10, len(left))
        left, tries = left[taken:], tries + 1
        assert one.flush(20) == 0
    assert tries == 3
    assert [m.value for m in broker.read(topic)] == sent


def test_what_is_refused(broker: Broker) -> None:
    """A message that is too large, and settings that are none."""
    topic = broker.topic("refused")
    one = client(broker, topic, message_max_bytes=1_000)
    with pytest.raises(KafkaException) as refused:
        one.produce(outgoing([b"x" * 10, b"x" * 2_000, b"x"]))
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    with pytest.raises(KafkaException, match=r"no\.such\.setting"):
        client(broker, topic, no_such_setting=1)


def test_what_is_not_delivered_is_reported(broker: Broker) -> None:
    """By what the broker says of it."""
    topic = broker.topic("undelivered", max_message_bytes="1000")
    reports = Reports(results(broker.servers, topic).spec)
    one = client(broker, topic, reports, delivery_report_only_error=True)
    assert one.produce(outgoing([b"x" * 10_000])) == 1
    assert one.flush(20) == 0
    assert reports.failed is not None
    assert reports.failed.code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_nothing_is_held(broker: Broker) -> None:
    """Messages take no memory once they are sent, and a producer that is let go ends its threads."""
    topic, process, sizes = broker.topic("let-go"), psutil.Process(), []
    before = process.num_threads()
    one = TransactionalProducer(results(broker.servers, topic), 0)
    one.open()
    for turn in range(8):
        one.begin(turn)
        one.produce(outgoing([b"x" * 10_000] * 2_000))
        one.flush()
        one.abort()
        sizes.append(process.memory_info().rss >> 20)
    assert sizes[-1] - sizes[1] < 60
    assert process.num_threads() > before
    del one
    gc.collect()
    assert process.num_threads() <= before
