"""Messages that cannot be rows."""

from typing import NamedTuple

from joinlib.source.kafka.messages import Message


class Bad(Exception):
    """Messages that cannot be rows; the text says why, without their content."""


class BadMessage(NamedTuple):
    """A message and why it cannot be decoded."""

    message: Message
    reason: str
