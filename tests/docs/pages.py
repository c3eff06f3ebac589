"""The Markdown of the project as data: its pages, and the fenced blocks of each.

`<!-- needs: kafka -->` at the top of a page names the servers that its commands talk to, `<!-- not run: why -->` directly
before a block leaves it out, and a block of `text` directly behind one of `bash` is what the commands print, in which "..."
stands for anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
RUN = ("bash", "yaml", "sql", "python")
SHOWN = ("", "text")  # pictures, and what commands print
SERVERS = ("kafka", "registry", "postgres", "cluster")
_NEEDS = re.compile(r"<!-- needs: (.+?) -->")
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->", re.DOTALL)
_NAME = re.compile(r"# (\S+\.\w+)$")


@dataclass(frozen=True)
class Block:
    """A fenced block. `line`: of its fence, from 1. `output`: what its commands print, if the page says it."""

    language: str
    text: str
    line: int
    not_run: str | None = None
    output: str | None = None

    @property
    def file(self) -> str | None:
        """The name that its first line gives it, as in `# orders.yaml`."""
        found = _NAME.match(self.text.partition("\n")[0])
        return found[1] if found else None


@dataclass(frozen=True)
class Page:
    """A Markdown file. `name` is its path from the root of the repository."""

    name: str
    blocks: tuple[Block, ...]
    needs: frozenset[str] = frozenset()

    @property
    def runs(self) -> bool:
        """Does it have anything to run or to check?"""
        return any(block.language in RUN and block.not_run is None for block in self.blocks)


def problems(page: Page) -> list[str]:
    """What the runner would pass over without a word: languages and servers that it does not know."""
    known = (*RUN, *SHOWN)
    found = [
        f"{page.name}:{block.line}: a block of {block.language!r}; write one of {', '.join(filter(None, known))}"
        for block in page.blocks
        if block.language not in known
    ]
    strange = sorted(page.needs - set(SERVERS))
    return found + [f"{page.name}: needs {name}; there is only {', '.join(SERVERS)}" for name in strange]


def names() -> list[str]:
    """All pages whose blocks are run."""
    docs = (str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    return ["README.md", *sorted(docs)]


def load(name: str) -> Page:
    """The page of a file of the repository."""
    return parse(name, (ROOT / name).read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Page:
    """The page of a text."""
    found = _NEEDS.search(text)
    needs = frozenset(re.split(r",\s*", found[1])) if found else frozenset[str]()
    tokens = [
        token
        for token in MarkdownIt().parse(text)
        if token.type in ("fence", "html_block") or token.level == 0
    ]
    return Page(name, tuple(_with_outputs(list(_blocks(name, tokens)), tokens)), needs)


def _blocks(name: str, tokens: list[Token]) -> Iterator[Block]:
    for at, token in enumerate(tokens):
        if token.type != "fence":
            continue
        assert token.map is not None
        language, line = token.info.strip(), token.map[0] + 1
        before = tokens[at - 1] if at else None
        reason = (
            _NOT_RUN.search(before.content) if before is not None and before.type == "html_block" else None
        )
        yield Block(language, token.content, line, " ".join(reason[1].split()) if reason else None)


def _with_outputs(blocks: list[Block], tokens: list[Token]) -> Iterator[Block]:
    """Each block of commands with the `text` that follows it at once."""
    fences = [at for at, token in enumerate(tokens) if token.type == "fence"]
    for number, block in enumerate(blocks):
        after = number + 1
        adjacent = after < len(blocks) and fences[after] == fences[number] + 1
        if block.language == "bash" and adjacent and blocks[after].language == "text":
            yield Block(block.language, block.text, block.line, block.not_run, blocks[after].text)
        else:
            yield block
