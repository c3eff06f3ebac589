"""What brokers answer, before it is believed."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid

from joinlib.errors import InputError
from joinlib.source.kafka.brokers import Brokers
from joinlib.spec.kafka import KafkaConnection


class Restarting:
    """The client of a broker that knows its topics again before it knows their offsets."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = list(offsets)
        self.high, self.low = 1, -1

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, "Future[Any]"]:
        found = SimpleNamespace(partitions=[SimpleNamespace(id=0)], topic_id=Uuid(self.high, self.low))
        return {"t": done(found)}

    def list_offsets(self, asked: dict[Any, Any], **_: Any) -> dict[Any, "Future[Any]"]:
        return {partition: done(SimpleNamespace(offset=self.offsets.pop(0))) for partition in asked}

    def poll(self, seconds: float) -> None:
        pass


class Refusing(Restarting):
    """The client of a broker that refuses so many requests, and then answers."""

    def __init__(self, times: int, code: int) -> None:
        super().__init__(*[3, 7] * 9)
        self.refusals = [KafkaException(KafkaError(code)) for _ in range(times)]

    def list_offsets(self, asked: dict[Any, Any], **more: Any) -> dict[Any, "Future[Any]"]:
        if self.refusals:
            raise self.refusals.pop()
        return super().list_offsets(asked, **more)


def done(value: object) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def test_an_answer_without_offsets_is_none() -> None:
    """It is asked for again: taken for an offset, it would say that all messages are gone."""
    brokers = Brokers(KafkaConnection(bootstrap_servers="nowhere:1"), ["t"])
    vars(brokers)["_admin"] = Restarting(-1001, -1001, 3, 7)
    assert brokers.ends() == {("t", 0): (3, 7)}
    assert brokers.ids == {"t": "0000000000000001ffffffffffffffff"}


def test_an_old_broker_has_no_ids() -> None:
    """It answers with zero: a name is all that its topics have."""
    brokers, admin = Brokers(KafkaConnection(bootstrap_servers="nowhere:1"), ["t"]), Restarting(3, 7)
    admin.high = admin.low = 0
    vars(brokers)["_admin"] = admin
    assert brokers.ends() and brokers.ids == {}


def test_a_first_refusal_is_the_users_mistake() -> None:
    """It is told at once. A cluster that has answered before may be restarting, and is asked again."""
    brokers = Brokers(KafkaConnection(bootstrap_servers="nowhere:1"), ["t"])
    vars(brokers)["_admin"] = Refusing(1, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(InputError, match=r"offsets of t: .*; grant it to this user"):
        brokers.ends()
    assert brokers.ends() == {("t", 0): (3, 7)}

    vars(brokers)["_admin"] = Refusing(2, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert brokers.ends() == {("t", 0): (3, 7)}


@pytest.mark.parametrize("code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE])
def test_a_partition_that_has_no_leader_yet_is_asked_again(code: int) -> None:
    """It is nobody's mistake: the topic was just made, or its broker was just lost."""
    brokers = Brokers(KafkaConnection(bootstrap_servers="nowhere:1"), ["t"])
    vars(brokers)["_admin"] = Refusing(2, code)
    assert brokers.ends() == {("t", 0): (3, 7)}


def test_what_nobody_refused_is_not_repeated() -> None:
    """An error of the program stays what it is."""
    brokers = Brokers(KafkaConnection(bootstrap_servers="nowhere:1"), ["t"])
    vars(brokers)["_admin"] = Restarting()  # it has no offsets to give
    with pytest.raises(IndexError):
        brokers.ends()
