"""The glossary is a table of words: each stands for a class, function or module that is there, and a class has one definition."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.pages import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
_ROW = re.compile(r"^\| (?P<word>[^|]+?) \|.*\| (?P<code>[^|]+?) \|$")
_NAME = re.compile(r"`((?:joinlib|jobs|joinop)[\w.]*)`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*glossary\.md\)")
_TERM = re.compile(r"\{term\}`([^`]+)`")


def rows(text: str) -> dict[str, list[str]]:
    """Each word, and the names in the code that its last column has."""
    found = (_ROW.match(line) for line in text.splitlines())
    return {
        row["word"].lower(): _NAME.findall(row["code"])
        for row in found
        if row and row["word"] != "Word" and set(row["word"]) != {"-"}
    }


def stands_for(name: str) -> object:
    """The module, or what it holds, by its dotted name. Raises AttributeError or ImportError."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as e:
            if e.name is None or not name.startswith(e.name):
                raise
            continue
        for part in parts[end:]:
            found = _part(found, part)
        return found
    raise ImportError(name)


def _part(owner: object, name: str) -> object:
    """An attribute, or a field of a dataclass or model, which its class need not have as an attribute."""
    fields = getattr(owner, "__annotations__", {})
    return fields[name] if name in fields else getattr(owner, name)


@cache
def classes() -> Counter[str]:
    """How often each class is defined in the product."""
    sources = [path for folder in ("joinlib", "jobs", "operator") for path in (ROOT / folder).rglob("*.py")]
    return Counter(node.name for source in sources for node in _definitions(source))


def _definitions(source: Path) -> Iterator[ast.ClassDef]:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def unknown(text: str, words: dict[str, list[str]]) -> list[str]:
    """Words that a page marks or links as the glossary's, and which it does not have."""
    marked = [*_TERM.findall(text), *(word for word in _LINK.findall(text) if word.lower() != "glossary")]
    return [word for word in marked if word.lower() not in words]


WORDS = rows(GLOSSARY.read_text(encoding="utf-8"))
NAMED = [(word, name) for word, names in WORDS.items() for name in names]


def test_it_is_a_table() -> None:
    """Some fifty words, nearly all of which have a name in the code."""
    assert len(WORDS) >= 40
    assert len({word for word, _ in NAMED}) >= 0.8 * len(WORDS)


@pytest.mark.parametrize(("word", "name"), NAMED, ids=lambda value: value)
def test_a_word_stands_for_one_thing(word: str, name: str) -> None:
    """What it names is there; a class of that name is defined once."""
    del word
    if isinstance(stands_for(name), type) and (last := name.rpartition(".")[2]) in (found := classes()):
        assert found[last] == 1


@pytest.mark.parametrize("name", pages.names())
def test_words_that_pages_link_are_there(name: str) -> None:
    """`[word](glossary.md)`."""
    assert unknown((ROOT / name).read_text(encoding="utf-8"), WORDS) == []


def test_what_is_not_there_is_found() -> None:
    """A word, a module, an attribute."""
    words = rows(
        "| Word | Meaning | In the code |\n|---|---|---|\n| unit | a slice | `joinlib.state.unit.Unit` |\n"
    )
    assert words == {"unit": ["joinlib.state.unit.Unit"]}
    assert unknown("a [Unit](../glossary.md), a [slot](glossary.md), the [glossary](glossary.md)", words) == [
        "slot"
    ]
    for name in ("joinlib.state.nothing", "joinlib.state.unit.Nothing", "joinlib.nothing.unit"):
        with pytest.raises((AttributeError, ImportError)):
            stands_for(name)
