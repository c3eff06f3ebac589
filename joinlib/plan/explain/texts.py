"""Changes the texts of a plan, but not what is within quotes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from operator import is_
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


def renaming(names: Mapping[str, str]) -> Say:
    """Return what gives inputs in a text other names, by alias; an empty name takes it away."""
    changed = {alias: name for alias, name in names.items() if alias != name}
    some = "|".join(map(re.escape, sorted(changed, key=len, reverse=True))) or "(?!)"
    pattern = rf"(?<![\w.$`])(?:{some})\.(?=[\w$`])"

    def word(found: re.Match[str]) -> str:
        name = changed[found[0][:-1]]
        return f"{name}." if name else ""

    return partial(in_text, pattern, word)


def in_all(value: Any, say: Say) -> Any:
    """Return a frozen value with all texts in it said; itself where that changes nothing."""
    if isinstance(value, str):
        return value if (said := say(value)) == value else said
    if isinstance(value, tuple):
        each = tuple(in_all(one, say) for one in value)
        return value if all(map(is_, each, value)) else each
    if not is_dataclass(value) or isinstance(value, type):
        return value
    # The node of an expression computes, and has no words.
    names = ("sql", "columns") if isinstance(value, Expr) else tuple(f.name for f in fields(value))
    found = {name: in_all(getattr(value, name), say) for name in names}
    changed = {name: now for name, now in found.items() if now is not getattr(value, name)}
    return replace(value, **changed) if changed else value
