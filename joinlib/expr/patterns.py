"""Functions of regular expressions, one row at a time, with Python's `re` in the place of Java's.

Law: Java's meaning. What the two write differently is translated; what Python lacks is refused, never guessed.
"""

import re
from functools import lru_cache
from typing import Any

import pyarrow as pa

from joinlib.expr import Expr, text
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.nodes import Literal
from joinlib.expr.rows import NoValueError
from joinlib.expr.signatures import Converter, Signature, row, row_call

_CLASSES = {
    "Lower": "a-z", "Upper": "A-Z", "ASCII": "\\x00-\\x7f", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~", "Graph": "!-~", "Print": " -~", "Blank": " \\t", "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F", "Space": " \\t\\n\\x0b\\f\\r",
}  # fmt: skip
_SHORT = {
    "h": " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000",
    "v": "\\n\\x0b\\f\\r\\x85\\u2028\\u2029",
}
_END = (
    "(?=(?:\\r\\n|[\\n\\r\\x85\\u2028\\u2029])?\\Z)"  # Java's $: also before a line break that ends the text
)
_DOT = "[^\\n\\r\\x85\\u2028\\u2029]"


@lru_cache(maxsize=1000)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of Java's.

    Raises:
        NoValueError: if it is not one, or Python has nothing like it.
    """
    try:
        return re.compile(_JavaPattern(pattern).translated(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise NoValueError("the regular expression cannot be read") from error


class _JavaPattern:
    """Translates a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = ""  # of the whole pattern, as in (?is)

    def translated(self) -> str:
        if found := re.match(r"\(\?([imsux]+)\)", self.pattern):
            self.flags, self.at = found[1].replace("u", ""), found.end()
        out = []
        while self.at < len(self.pattern):
            out.append(self._next())
        return (f"(?{self.flags})" if self.flags else "") + "".join(out)

    def _next(self) -> str:
        c = self.pattern[self.at]
        if c == "\\":
            return self._escaped(False)
        self.at += 1
        if c == "[":
            return self._set()
        if c == "(" and (found := re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.at)):
            self.at = found.end()
            return f"(?P<{found[1]}>"
        if c == "(" and re.compile(r"\?[imsux-]+\)").match(self.pattern, self.at):
            raise NoValueError("flags stand only at the beginning of a regular expression, or as (?i:...)")
        if c == "$" and "m" not in self.flags:
            return _END
        return _DOT if c == "." and "s" not in self.flags else c

    def _escaped(self, inside: bool) -> str:
        """Translate what begins with a backslash; `inside` [...]."""
        c = self.pattern[self.at + 1 : self.at + 2]
        self.at += 2
        if c == "Q":
            end = self.pattern.find("\\E", self.at)
            text = self.pattern[self.at : end if end >= 0 else None]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            return re.escape(text)
        if c in ("p", "P"):
            return self._class(c == "P", inside)
        if c in ("h", "v", "H", "V") and not (inside and c.isupper()):
            return _SHORT[c] if inside else f"[{'^' * c.isupper()}{_SHORT[c.lower()]}]"
        if c == "k" and (found := re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.at)):
            self.at = found.end()
            return f"(?P={found[1]})"
        plain = {"z": "\\Z", "Z": _END, "e": "\\x1b", "R": "(?:\\r\\n|[\\n\\x0b\\f\\r\\x85\\u2028\\u2029])"}
        if c in plain and (c == "e" or not inside):
            return plain[c]
        if c == "x" and self.pattern[self.at : self.at + 1] == "{":
            end = self.pattern.index("}", self.at)
            code, self.at = int(self.pattern[self.at + 1 : end], 16), end + 1
            return re.escape(chr(code))
        if c and c in "GXNcHVbBA" and (inside or c in "GXNc"):
            raise NoValueError(f"\\{c} in a regular expression is not supported")
        return "\\" + c

    def _class(self, negated: bool, inside: bool) -> str:
        found = re.compile(r"\{(?:Is|java)?([A-Za-z]+)\}|([A-Z])").match(self.pattern, self.at)
        name = (found[1] or found[2]) if found else ""
        unicode = {"L": "^\\W\\d_", "Alphabetic": "^\\W\\d_"}
        if (
            found is None
            or (name not in _CLASSES and (inside or name not in unicode))
            or (negated and inside)
        ):
            raise NoValueError("\\p{...} of this kind is not supported in a regular expression")
        self.at = found.end()
        if name in unicode:
            return "(?u:[\\W\\d_])" if negated else f"(?u:[{unicode[name]}])"
        return _CLASSES[name] if inside else f"[{'^' * negated}{_CLASSES[name]}]"

    def _set(self) -> str:
        out, first = ["["], True
        if self.pattern[self.at : self.at + 1] == "^":
            out.append("^")
            self.at += 1
        while self.at < len(self.pattern):
            c = self.pattern[self.at]
            if c == "]" and not first:
                self.at += 1
                return "".join(out) + "]"
            if c == "[" or self.pattern.startswith("&&", self.at):
                raise NoValueError(
                    "a set within a set [a[b]], [a&&b] is not supported in a regular expression"
                )
            if c == "\\":
                out.append(self._escaped(True))
            else:
                out.append("\\]" if c == "]" else c)
                self.at += 1
            first = False
        raise NoValueError("a [ is not closed in a regular expression")


def _group(found: re.Match[str], number: int) -> str:
    if not 0 <= number <= (found.re.groups or 0):
        raise NoValueError("the regular expression has no group of that number")
    return found[number] or ""


def regexp_like(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text) is not None


def regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    found = compiled(pattern).search(text)
    return "" if found is None else _group(found, group)


def regexp_extract_all(text: str, pattern: str, group: int = 1) -> list[str]:
    return [_group(found, group) for found in compiled(pattern).finditer(text)]


def regexp_count(text: str, pattern: str) -> int:
    return sum(1 for _ in compiled(pattern).finditer(text))


def regexp_instr(text: str, pattern: str, group: int = 0) -> int:
    found = compiled(pattern).search(text)
    return 0 if found is None else found.start() + 1


def regexp_substr(text: str, pattern: str) -> str | None:
    found = compiled(pattern).search(text)
    return None if found is None else found[0]


def regexp_replace(text: str, pattern: str, new: str, start: int = 1) -> str:
    if start < 1:
        raise NoValueError("regexp_replace: positions count from 1")
    return text[: start - 1] + compiled(pattern).sub(_replacement(pattern, new), text[start - 1 :])


@lru_cache(maxsize=1000)
def _replacement(pattern: str, new: str) -> Any:
    """Translate Java's replacement ($1, ${name}, \\$) to a function of what was found."""
    groups, parts, at = compiled(pattern).groups, list[str | int](), 0
    while at < len(new):
        c = new[at]
        if c == "\\":
            if at + 1 == len(new):
                raise NoValueError("a replacement cannot end with a backslash")
            parts.append(new[at + 1])
            at += 2
        elif c == "$":
            number, at = _reference(pattern, new, at + 1, groups)
            parts.append(number)
        else:
            parts.append(c)
            at += 1

    def made(found: re.Match[str]) -> str:
        return "".join(p if isinstance(p, str) else found[p] or "" for p in parts)

    return made


def _reference(pattern: str, new: str, at: int, groups: int) -> tuple[int, int]:
    """Read a group's number, with as many digits as there are groups, or its name."""
    if named := re.compile(r"\{(\w+)\}").match(new, at):
        if named[1] not in compiled(pattern).groupindex:
            raise NoValueError("the regular expression has no group of that name")
        return compiled(pattern).groupindex[named[1]], named.end()
    if not new[at : at + 1].isdigit():
        raise NoValueError("a replacement has $ without a group; write \\$")
    number = int(new[at])
    at += 1
    while new[at : at + 1].isdigit() and number * 10 + int(new[at]) <= groups:
        number, at = number * 10 + int(new[at]), at + 1
    if number > groups:
        raise NoValueError("the regular expression has no group of that number")
    return number, at


def split(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Split as Java does: a match of no width at the beginning gives no empty part."""
    if not pattern:
        parts = list(text) or [""]
        return parts if limit <= 0 or len(parts) <= limit else [*parts[: limit - 1], text[limit - 1 :]]
    out, begin = list[str](), 0
    for found in compiled(pattern).finditer(text):
        if limit > 0 and len(out) == limit - 1:
            break
        if found.end() == 0 or (found.start() == found.end() == len(text)):
            continue
        out.append(text[begin : found.start()])
        begin = found.end()
    return [*out, text[begin:]]


def sql_like(value: str, pattern: str, escape: str = "\\", fold: bool = False) -> bool:
    if fold:
        value, pattern = value.lower(), pattern.lower()
    (first, _), *others = _parts(pattern, escape)
    if not others:
        return first.fullmatch(value) is not None
    *middle, (last, size) = others
    found = first.match(value)
    for part, _ in middle:
        found = found and part.search(value, found.end())
    end = len(value) - size
    return found is not None and found.end() <= end and last.match(value, end) is not None


@lru_cache(maxsize=1000)
def _parts(pattern: str, escape: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return what a pattern of LIKE has between its %, with the size of what each part matches.

    Each is matched as early as it can be, which takes none of the others a place: no text makes that slow.
    """
    parts: list[list[str]] = [[]]
    rest = iter(pattern)
    for c in rest:
        if c == escape:
            c = next(rest, "")
            if not c or c not in ("%", "_", escape):
                raise NoValueError(f"in a LIKE pattern {escape} may only come before %, _ or itself")
            parts[-1].append(re.escape(c))
        elif c == "%":
            parts.append([])
        else:
            parts[-1].append("." if c == "_" else re.escape(c))
    return tuple((re.compile("".join(part), re.DOTALL), len(part)) for part in parts)


def like(value: Expr, pattern: Expr, escape: str = "\\", fold: bool = False) -> Expr:
    """Build LIKE, and ILIKE with `fold`; a pattern need not be a constant."""
    if isinstance(pattern.node, Literal) and pattern.type != t.NULL and not fold:
        return text.like(value, pattern, escape)
    name = "ILIKE" if fold else "LIKE"
    values = [s.STRING(name, value), s.STRING(name, pattern)]
    made = row_call(name, sql_like, t.BOOLEAN, values, more=(escape, fold))
    more = "" if escape == "\\" else f" ESCAPE '{escape}'"
    return Expr(f"({values[0].sql} {name} {values[1].sql}{more})", made.columns, made.type, made.node)


def pattern(name: str, value: Expr) -> Expr:
    """Take a regular expression; a constant one is checked at once."""
    return s.readable(name, value, compiled)


_PATTERN: Converter = pattern
FUNCTIONS: dict[str, Signature] = {
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), row(regexp_like, t.BOOLEAN, s.STRING, _PATTERN)),
    "regexp_extract": row(regexp_extract, t.STRING, s.STRING, _PATTERN, s.INT, least=2),
    "regexp_extract_all": row(regexp_extract_all, pa.list_(t.STRING), s.STRING, _PATTERN, s.INT, least=2),
    "regexp_count": row(regexp_count, t.INT, s.STRING, _PATTERN),
    "regexp_instr": row(regexp_instr, t.INT, s.STRING, _PATTERN, s.INT, least=2),
    "regexp_substr": row(regexp_substr, t.STRING, s.STRING, _PATTERN),
    "regexp_replace": row(regexp_replace, t.STRING, s.STRING, _PATTERN, s.STRING, s.INT, least=3),
    "split": row(split, pa.list_(t.STRING), s.STRING, _PATTERN, s.INT, least=2),
}
