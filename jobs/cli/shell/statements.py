"""Cuts what was typed into statements, and says what each wants. Law: a semicolon in quotes or comments ends nothing.

A command of one line, such as SHOW TABLES, needs no semicolon: its line ends it.
"""

import re
from dataclasses import dataclass
from typing import Literal

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from joinlib.sql.parse import Dialect

Verb = Literal["query", "watch", "explain", "view", "drop", "show", "describe", "help", "exit"]
_NAME = r"`?([A-Za-z_]\w*)`?"
_FORMS: tuple[tuple[str, Verb], ...] = (
    (r"(?:exit|quit)\b", "exit"),
    (r"help\b", "help"),
    (r"show\s+(?:tables|inputs|views)\b", "show"),
    (rf"(?:describe|desc)\s+(?:table\s+)?{_NAME}", "describe"),
    (rf"drop\s+view\s+{_NAME}", "drop"),
    (rf"create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?view\s+{_NAME}\s+as\b", "view"),
    (r"explain\b", "explain"),
    (r"watch\b", "watch"),
)
_ONE_LINE = ("exit", "help", "show", "describe", "drop")
_LINE = re.compile(
    rf"\s*({'|'.join(form for form, verb in _FORMS if verb in _ONE_LINE)})[ \t]*(?:--.*)?\r?\n", re.IGNORECASE
)


@dataclass(frozen=True)
class Statement:
    """One statement. `text`: the query in it; `name`: of the view or table that it is about."""

    verb: Verb
    text: str = ""
    name: str = ""


def cut(text: str) -> tuple[list[str], str]:
    """Return the statements that a semicolon or their line ends, and the rest."""
    found, start = [], 0
    for stop, behind in [*_semicolons(text), (len(text), None)]:
        while line := _LINE.match(text, start, stop):
            found.append(line[1])
            start = line.end()
        if behind is not None:
            found.append(text[start:stop])
            start = behind
    return [each.strip() for each in found if each.strip()], text[start:]


def _semicolons(text: str) -> list[tuple[int, int]]:
    """Return where the semicolons that end something are, and what is behind each; none while a quote is open."""
    try:
        tokens = Dialect().tokenize(text)
    except SqlglotError:
        return []
    return [(token.start, token.end + 1) for token in tokens if token.token_type is TokenType.SEMICOLON]


def complete(text: str) -> bool:
    """Whether what was typed can be run: a semicolon ends it, or it is a command of one line."""
    statements, rest = cut(text)
    if not rest.strip():
        return bool(statements) or not text.strip()
    return not statements and read(rest).verb in _ONE_LINE


def read(text: str) -> Statement:
    """Return what a statement wants."""
    text = text.strip()
    for form, verb in _FORMS:
        if found := re.match(form, text, re.IGNORECASE):
            name = found[1] if found.re.groups else ""
            return Statement(verb, text[found.end() :].strip(), name)
    return Statement("query", text)
