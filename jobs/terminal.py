"""Texts for a terminal. Law: no character of a row, a file's name or a server's answer steers it.

Escape sequences could set its title, write to its clipboard, hide a line or show one that nobody printed: control
characters are shown as Python writes them, such as `\\x1b`.
"""

import re

import typer

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_IN_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def visible(value: str) -> str:
    """Return a value in one line, with its control characters as `\\n` or `\\x1b`."""
    return _CONTROL.sub(_written, value)


def lines(text: str) -> str:
    """Return a text in lines, with all other control characters as `\\x1b`."""
    return _IN_LINES.sub(_written, text)


def say(text: str, *, err: bool = False) -> None:
    """Print a text for people."""
    typer.echo(lines(text), err=err)


def _written(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]
