"""Messages as a client hands them on, made by hand, and as one is given them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.messages import messages
from joinlib.source.kafka.bad import BadMessage
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.messages import Message, Messages


def sent(value: bytes | None, offset: int = 0, key: bytes | None = None) -> Message:
    """One of partition 3 of a topic."""
    return Message("orders", 3, offset, 1_000, key, value, ((b"h", b"1"),))


def decoded(decoder: Decoder, messages: Sequence[Message]) -> tuple[pa.RecordBatch | None, list[BadMessage]]:
    """What becomes of them, all at once."""
    return decoder.decode(Messages.of(messages)) if messages else (None, [])


def rows(found: tuple[pa.RecordBatch | None, list[BadMessage]]) -> list[tuple[Any, ...]]:
    """The rows of what was `decoded`, all of which can be read."""
    batch, bad = found
    assert bad == []
    assert batch is not None
    return [tuple(row.values()) for row in batch.to_pylist()]


def written(batch: pa.RecordBatch, target: KafkaSinkConfig) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of what rows become."""
    made = [
        zip(part.keys or [None] * len(part), part.values, strict=True) for part in messages(batch, target)
    ]
    return [pair for pairs in made for pair in pairs]
