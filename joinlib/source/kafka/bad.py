"""Messages that cannot be rows."""

from typing import Any, NamedTuple


class Bad(Exception):
    """Messages that cannot be rows; the text says why, without their content."""


class BadMessage(NamedTuple):
    """A message and why it cannot be decoded."""

    message: Any
    reason: str
