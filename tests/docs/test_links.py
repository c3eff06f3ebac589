"""Every link of the project's Markdown leads to a file, folder or heading that is there, on a forge as in the site."""

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs.pages import ROOT

_ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")  # https:, mailto:
_LEFT_OUT = {".git", ".venv", "build", "node_modules"}


def markdown() -> Iterator[Path]:
    """All Markdown of the repository."""
    for folder, below, files in os.walk(ROOT):
        below[:] = [name for name in below if name not in _LEFT_OUT and not name.startswith(".")]
        yield from (Path(folder) / name for name in files if name.endswith(".md"))


def links(text: str) -> Iterator[str]:
    """The targets of its links and images."""
    for token in MarkdownIt().enable("table").parse(text):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target and not _ELSEWHERE.match(str(target)):
                yield str(target)


def anchors(text: str) -> set[str]:
    """The names that a forge gives to headings."""
    found: Counter[str] = Counter()
    tokens = MarkdownIt().parse(text)
    names = set()
    for opening, inline in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            plain = "".join(child.content for child in inline.children or ())
            name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
            names.add(f"{name}-{found[name]}" if found[name] else name)
            found[name] += 1
    return names


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    wrong = []
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("page", sorted(markdown()), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Relative ones; others are not followed, since tests need no network."""
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """A file that is not there, a heading that is not there; not those that are."""
    (tmp_path / "there.md").write_text("# One\n\n## `a.b` and *c*\n\n## One\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#ab-and-c) [c](there.md#one-1) [d](no.md) [e](there.md#two) [f](https://x.y)\n"
    )
    assert broken(page) == ["no.md", "there.md#two"]
