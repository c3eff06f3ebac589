"""Leaves out the parentheses of a text that its reader does not need.

    ((0.9 * price) > 10) AND ((0.9 * price) < 50)        0.9 * price > 10 AND 0.9 * price < 50
    (a = 1) OR ((b = 2) AND (c = 3))                     a = 1 OR (b = 2 AND c = 3)

Law: the text that remains is read as the same value. They stay where AND and OR meet, || and +, and after NOT.
"""

import re
from collections.abc import Sequence

from joinlib.plan.explain.texts import QUOTED

_WORD = re.compile(rf"{QUOTED}|`[^`]*`|\w[\w.$]*|<=>|<>|<=|>=|\|\||->|\s+|.", re.DOTALL)
_TIES = {
    "OR": 1, "AND": 2, "NOT": 3,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "LIKE", "IS", "IN", "BETWEEN"), 4),
    "||": 5, "+": 6, "-": 6, **dict.fromkeys(("*", "/", "%", "DIV"), 7),
}  # fmt: skip
_ATOM, _COMPARED = 9, 4
_APART = ({1, 2}, {5, 6})  # dialects and readers differ in what of these ties closer
# what stands before and behind whole parts of a text
_BEFORE = ("", "(", ",", "WHERE", "BY", "CASE", "WHEN", "THEN", "ELSE")
_BEHIND = ("", ")", ",", "WHEN", "THEN", "ELSE", "END", "ORDER", "ASC", "DESC", "NULLS", "ROWS", "RANGE")


def lighter(sql: str) -> str:
    """Return the text without such parentheses."""
    words = _WORD.findall(sql)
    opened: list[int] = []
    for at, word in enumerate(words):
        if word == "(":
            opened.append(at)
        elif word == ")":
            if not opened:
                return sql
            start = opened.pop()
            if _needless(words, start, at):
                words[start] = words[at] = ""
    return sql if opened else "".join(words)


def _needless(words: Sequence[str], start: int, end: int) -> bool:
    before, after = _near(words, start, -1), _near(words, end, 1)
    if not (before in _BEFORE or before in _TIES) or not (after in _BEHIND or after in _TIES):
        return False
    if before == "IN" or (before == "-" and _near(words, _place(words, start, -1), -1) in {*_BEFORE, *_TIES}):
        return False
    inner = _tie(words[start + 1 : end])
    left, right = _TIES.get(before, 0), _TIES.get(after, 0)
    if inner == _ATOM:
        return True
    if before == "NOT" or any(two <= {inner, left, right} for two in _APART):
        return False
    if inner in (1, 2):
        return inner >= left and inner >= right
    return inner > left and (inner > right or inner == right != _COMPARED)


def _place(words: Sequence[str], at: int, step: int) -> int:
    """Return the place of the next word to one side that is no space and still there."""
    at += step
    while 0 <= at < len(words) and not words[at].strip():
        at += step
    return at


def _near(words: Sequence[str], at: int, step: int) -> str:
    found = _place(words, at, step)
    return words[found].upper() if 0 <= found < len(words) else ""


def _tie(words: Sequence[str]) -> int:
    """Return how closely the loosest operator of a text ties; 0 if it is a list, a query or a function."""
    depth, cases, between, found = 0, 0, 0, _ATOM
    for word in map(str.upper, words):
        depth += (word in ("(", "[")) - (word in (")", "]"))
        cases += (word == "CASE") - (word == "END")
        if depth or cases:
            continue
        if word in (",", "->", "SELECT"):
            return 0
        if word == "AND" and between:
            between -= 1
            continue
        between += word == "BETWEEN"
        found = min(found, _TIES.get(word, _ATOM))
    return found
