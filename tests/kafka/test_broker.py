"""The tests' own broker: it starts, keeps what it was sent over a kill, and ends."""

from tests.kafka.broker import Broker


def test_a_killed_broker_still_has_its_messages(own_broker: Broker) -> None:
    """What was sent before is there after."""
    own_broker.topic("t", 2)
    own_broker.send("t", [b"1", None], partition=1, key=b"k")
    own_broker.kill()
    own_broker.start()

    assert [(s.partition, s.offset, s.key, s.value) for s in own_broker.read("t")] == [
        (1, 0, b"k", b"1"),
        (1, 1, b"k", None),
    ]
