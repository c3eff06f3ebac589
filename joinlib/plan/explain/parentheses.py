"""Leaves out the parentheses of a text that its reader does not need.

    ((0.9 * price) > 10) AND ((0.9 * price) < 50)        0.9 * price > 10 AND 0.9 * price < 50
    (a = 1) OR ((b = 2) AND (c = 3))                     a = 1 OR (b = 2 AND c = 3)

They stay where AND and OR meet, || and +, and after NOT. Law: the text that remains is read as the same value.
Cost: linear.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass
class _Open:
    """What stands between parentheses that are still open, or around all of them."""

    start: int
    tie: int = _ATOM  # how closely its loosest operator ties; 0: a list, a query or a function
    cases: int = 0
    between: int = 0  # BETWEENs whose AND has not come

    def take(self, word: str) -> None:
        self.cases += (word == "CASE") - (word == "END")
        if self.cases:
            return
        if word == "AND" and self.between:
            self.between -= 1
            return
        self.between += word == "BETWEEN"
        self.tie = 0 if word in (",", "->", "SELECT") else min(self.tie, _TIES.get(word, _ATOM))


def lighter(sql: str) -> str:
    """Return the text without such parentheses."""
    words = _WORD.findall(sql)
    parts = [_Open(-1)]
    for at, word in enumerate(words):
        if word in "([":
            parts.append(_Open(at))
        elif word not in ")]":
            parts[-1].take(word.upper())
        elif len(parts) == 1:
            return sql
        else:
            part = parts.pop()
            if word == ")" and _needless(words, part, at):
                words[part.start] = words[at] = ""
                parts[-1].tie = min(parts[-1].tie, _ATOM if parts[-1].cases else part.tie)
    return sql if len(parts) > 1 else "".join(words)


def _needless(words: Sequence[str], part: _Open, end: int) -> bool:
    before, after = _near(words, part.start, -1), _near(words, end, 1)
    if not (before in _BEFORE or before in _TIES) or not (after in _BEHIND or after in _TIES):
        return False
    sign = before == "-" and _near(words, _place(words, part.start, -1), -1) in {*_BEFORE, *_TIES}
    if before == "IN" or sign:
        return False
    inner, left, right = part.tie, _TIES.get(before, 0), _TIES.get(after, 0)
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
