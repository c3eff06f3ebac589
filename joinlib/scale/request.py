"""A request for executors: the operator makes it, and the driver takes it and tells why.

The reason becomes a line of a log and of a page. Laws: what `line` returns `is_line`, unless nothing is left of
the text; a line stays as it is.
"""

from dataclasses import dataclass

REASON_MAX = 300  # characters; as JSON with its escapes they fit in the body that a driver reads


@dataclass(frozen=True)
class ExecutorRequest:
    """How many executors are wanted, and why: in one line."""

    total: int
    reason: str


def is_line(text: str) -> bool:
    """Whether a text is a reason: one line, not empty, of characters that can be printed."""
    return bool(text) and text == line(text)


def line(text: str) -> str:
    """Make a line of a text: what cannot be printed, as what breaks lines, becomes a space; the end is cut."""
    words = "".join(char if char.isprintable() else " " for char in text).split()
    return " ".join(words)[:REASON_MAX].strip()
