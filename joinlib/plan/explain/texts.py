"""Changes the texts of a plan, but not what is within quotes."""

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from joinlib.expr import Expr

KEPT = "kept, as the checkpoint has it"  # and read by nobody
FROM_KEPT = "computed from what is kept, as the checkpoint has it"
Say = Callable[[str], str]
QUOTED = r"'(?:[^'\\]|\\.|'')*'"


def bare(sql: str) -> str:
    """Return the text of an expression without the parentheses around all of it."""
    if not (sql.startswith("(") and sql.endswith(")")):
        return sql
    depth = 0
    for at, sign in enumerate(re.sub(QUOTED, lambda m: " " * len(m[0]), sql)):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and at < len(sql) - 1:
            return sql
    return bare(sql[1:-1])


def in_text(pattern: str, word: str | Callable[[re.Match[str]], str], text: str) -> str:
    """Replace what is not within quotes."""

    def change(found: re.Match[str]) -> str:
        if found[0].startswith("'"):
            return found[0]
        return word if isinstance(word, str) else word(found)

    return re.sub(rf"{QUOTED}|{pattern}", change, text)


def in_all(value: Any, say: Say) -> Any:
    """Return a frozen value with all texts in it said."""
    if isinstance(value, str):
        return say(value)
    if isinstance(value, tuple):
        return tuple(in_all(each, say) for each in value)
    if isinstance(value, Expr):  # its node computes, and has no words
        return replace(value, sql=say(value.sql), columns=tuple(map(say, value.columns)))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: in_all(getattr(value, f.name), say) for f in fields(value)})
    return value
