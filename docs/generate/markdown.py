"""Markdown as text: tables, and code that may hold anything."""

from collections.abc import Iterable, Iterator, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, with an empty line before and behind it."""
    yield ""
    yield _row(head)
    yield "|" + "---|" * len(head)
    yield from (_row(row) for row in rows)
    yield ""


def code(text: str) -> str:
    """The text as code. Tables end a cell at `|`, also within code, so it is written as an entity there."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def page(lines: Iterable[str]) -> str:
    """A page of these lines, never with two empty ones in a row."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip() + "\n"
