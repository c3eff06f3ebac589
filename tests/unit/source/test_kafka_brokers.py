"""What brokers answer, before it is believed."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from joinlib.source.kafka.brokers import Brokers
from joinlib.spec.kafka import KafkaConnection


class Restarting:
    """The client of a broker that knows its topics again before it knows their offsets."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = list(offsets)

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, "Future[Any]"]:
        return {"t": done(SimpleNamespace(partitions=[SimpleNamespace(id=0)]))}

    def list_offsets(self, asked: dict[Any, Any], **_: Any) -> dict[Any, "Future[Any]"]:
        return {partition: done(SimpleNamespace(offset=self.offsets.pop(0))) for partition in asked}

    def poll(self, seconds: float) -> None:
        pass


def done(value: object) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def test_an_answer_without_offsets_is_none() -> None:
    """It is asked for again: taken for an offset, it would say that all messages are gone."""
    brokers = Brokers(KafkaConnection(bootstrap_servers="nowhere:1"), ["t"])
    vars(brokers)["_admin"] = Restarting(-1001, -1001, 3, 7)
    assert brokers.ends() == {("t", 0): (3, 7)}
