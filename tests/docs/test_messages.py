"""Messages that troubleshooting.md quotes are those of the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
QUOTED = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
SOURCES = ("joinlib", "jobs", "operator/joinop")
VARIES = "…"


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_code(message: str) -> None:
    """Its parts stand in one text of the code, in their order. A word alone is a text of its own, or a part of one in braces."""
    assert any(_fits(message, text) for text in _texts())


def test_messages_are_quoted() -> None:
    """The page has them in the first column of its tables."""
    assert len(QUOTED) > 50


def test_a_message_that_nobody_raises_is_found() -> None:
    """Neither other words nor another order will do."""
    assert not any(_fits("the disk is empty: … has … left; …", text) for text in _texts())
    assert not any(_fits("… left; … the disk is full", text) for text in _texts())


def _fits(message: str, text: str) -> bool:
    parts = [part for part in message.split(VARIES) if part]
    if not all(part in text for part in parts):
        return False
    return re.search(".*".join(map(re.escape, parts)), text, re.DOTALL) is not None


@cache
def _texts() -> frozenset[str]:
    """Every text of the code, with what varies replaced by an ellipsis."""
    files = chain.from_iterable((ROOT / source).rglob("*.py") for source in SOURCES)
    return frozenset(chain.from_iterable(_of(file) for file in files))


def _of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(_part(value) for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _part(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else VARIES
