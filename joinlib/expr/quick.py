"""Functions over whole columns, in Arrow, where all arguments but the first are constants that allow it.

Law: the same values as those of the function for one row, which stays the definition.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.dates import date_format
from joinlib.expr.formats import pieces
from joinlib.expr.nested import pick
from joinlib.expr.nodes import Call, Literal, NoValueError, Value, columnar
from joinlib.expr.rows import Rule, by_rows

_Kernel = tuple[Callable[..., Any], tuple[Any, ...]]
# Regular expressions that Java, Python and RE2 read alike: no . $ \\s, no flags, no references, nothing lazy.
_ALIKE = re.compile(
    r"\^?(?:[\w ,:;=&/@<>#!%~\"'-]|\\[dw./]|\[[\w ,:;=&/@-]+\]|\[\^[\w ,:;=&/@-]+\]|[(|)^]|[+*](?![+?])|\?(?![+?:]))*"
)


def quicker(name: str, given: list[Expr], made: Expr) -> Expr:
    """Return the call `made` with a kernel of Arrow, if there is one for these arguments."""
    kernel = _TABLE.get(name)
    if kernel is None or isinstance(made.node, Literal) or not given[0].columns:
        return made
    constants = [e.node.value.as_py() for e in given[1:] if isinstance(e.node, Literal)]
    if len(constants) < len(given) - 1 or None in constants:
        return made
    found = kernel(given[0].type, *constants)
    if found is None:
        return made
    of, parameters = found
    return replace(made, node=Call(of, (given[0].node,), parameters, made.sql))


def _alike(pattern: str) -> bool:
    return "(?" not in pattern and _ALIKE.fullmatch(pattern) is not None


def _text(kind: pa.DataType, *constants: Any) -> bool:
    return kind == t.STRING and all(isinstance(c, str) for c in constants)


def _contains(kind: pa.DataType, part: Any) -> _Kernel | None:
    return (match, ("match_substring", part)) if _text(kind, part) else None


def _starts(kind: pa.DataType, part: Any) -> _Kernel | None:
    return (match, ("starts_with", part)) if _text(kind, part) else None


def _ends(kind: pa.DataType, part: Any) -> _Kernel | None:
    return (match, ("ends_with", part)) if _text(kind, part) else None


def match(value: Value, name: str, part: str) -> Value:
    return pc.call_function(name, [value], pc.MatchSubstringOptions(part))


def _rlike(kind: pa.DataType, pattern: Any) -> _Kernel | None:
    return (match, ("match_substring_regex", pattern)) if _text(kind, pattern) and _alike(pattern) else None


def _extract(kind: pa.DataType, pattern: Any, group: Any = 1) -> _Kernel | None:
    if not _text(kind, pattern) or not isinstance(group, int) or not _alike(pattern) or "\\(" in pattern:
        return None
    groups = re.compile(pattern).groups
    if not 0 <= group <= groups or re.search(r"\[[^\]]*\(", pattern):
        return None
    numbers = iter(range(1, groups + 1))
    named = re.sub(r"\(", lambda _: f"(?P<g{next(numbers)}>", pattern)
    return extract, (f"(?P<g0>{named})", group)


@columnar
def extract(value: pa.Array, pattern: str, group: int) -> pa.Array:
    found = pc.struct_field(pc.extract_regex(value, pattern), [f"g{group}"])
    return pc.if_else(value.is_null(), pa.scalar(None, t.STRING), found.fill_null(""))


def _split(kind: pa.DataType, pattern: Any, limit: Any = -1) -> _Kernel | None:
    plain = _text(kind, pattern) and re.fullmatch(r"[\w ,:;=&/@<>#!%~\"'-]", pattern)
    return (split, (pattern,)) if plain and limit == -1 else None


def split(value: Value, pattern: str) -> Value:
    return pc.split_pattern(value, pattern)


def _split_part(kind: pa.DataType, mark: Any, number: Any) -> _Kernel | None:
    plain = _text(kind, mark) and mark and isinstance(number, int) and number > 0
    return (split_part, (mark, number)) if plain else None


@columnar
def split_part(value: pa.Array, mark: str, number: int) -> pa.Array:
    parts = pc.split_pattern(value, mark, max_splits=number)
    found = pick(parts, pa.repeat(pa.scalar(number, pa.int64()), len(value)), 1, False)
    return pc.if_else(value.is_null(), pa.scalar(None, t.STRING), found.fill_null(""))


_FINE = {
    "S": None,
    "s": "second",
    "m": "minute",
    "h": "hour",
    "H": "hour",
    "K": "hour",
    "k": "hour",
    "a": "hour",
}


def _written(kind: pa.DataType, pattern: Any) -> _Kernel | None:
    """Write a time only once for all moments that look alike: those of one day, of one minute."""
    if not (t.is_timestamp(kind) and isinstance(pattern, str)):
        return None
    try:
        letters = {piece.letter for piece in pieces(pattern)}
    except NoValueError:
        return None
    unit = next((unit for letter, unit in _FINE.items() if letter in letters), "day")
    return None if unit is None else (write, (pattern, unit))


def write(value: Value, pattern: str, unit: str) -> Value:
    floor = pc.floor_temporal(value, unit=unit)
    return by_rows(floor, pa.scalar(pattern), Rule(date_format, t.STRING))


_TABLE: dict[str, Callable[..., _Kernel | None]] = {
    "contains": _contains,
    "startswith": _starts,
    "endswith": _ends,
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), _rlike),
    "regexp_extract": _extract,
    "split": _split,
    "split_part": _split_part,
    "date_format": _written,
}
