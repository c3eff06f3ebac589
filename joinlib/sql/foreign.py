"""Names what other dialects have and this one does not, where the parser has no words for it."""

import re
from collections.abc import Iterator

from sqlglot import exp

_WORDS = {
    r"\bMATCH_RECOGNIZE\b": (
        "MATCH_RECOGNIZE is not supported; compare a row with those before it by lag(x) OVER (PARTITION BY k ORDER"
        " BY t)"
    ),
    r"(?<=\bSELECT)\s+TOP\b(?=\s*\(?\d)": "TOP is not supported; write ORDER BY ... LIMIT n at the end",
}


def foreign(sql: str) -> tuple[str, int] | None:
    """Return what is to be said of a text that cannot be parsed, and where its word of another dialect begins."""
    for word, told in _WORDS.items():
        if found := re.search(word, sql, re.IGNORECASE):
            return told, found.end() - len(found[0].lstrip())
    return None


def unfilled(query: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the marks for values that nobody gives, ?, :x and @x, each behind what is to be said of it."""
    for mark in query.find_all(exp.Parameter, exp.Placeholder):
        name = f"{'@' * isinstance(mark, exp.Parameter)}{mark.name}"
        yield f"{name} stands for nothing: a value of spec.parameters is written ${{name}}", mark
