"""The tests' own broker: it starts, keeps what it was sent over a kill, and ends."""

import ast
from collections import Counter
from pathlib import Path

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


def test_no_two_tests_share_a_topic() -> None:
    """Which files meet at one broker depends on how the tests are spread, so it is looked up here and not there."""
    files = Path(__file__).parent.glob("test_*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    topics = Counter(topic for node in nodes if (topic := _named(node)))
    assert len(topics) > 10
    assert not [topic for topic, times in topics.items() if times > 1]


def _named(node: ast.AST) -> str | None:
    """Return the name in `broker.topic("name")`, where the broker is the shared one."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name("broker"), attr="topic"), args=[ast.Constant(str(name)), *_]
        ):
            return name
    return None
