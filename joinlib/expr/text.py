"""Builds functions of text. Law: positions and lengths count characters, from 1; NULL in, NULL out."""

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.cast import cast, castable
from joinlib.expr.nodes import Literal, Value, call, columnar, compute

_ASCII = {"upper": pc.ascii_upper, "lower": pc.ascii_lower}
_UNICODE = {"upper": str.upper, "lower": str.lower}
_SIDES = {"trim": pc.utf8_trim, "btrim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}


def text(name: str, value: Expr) -> Expr:
    """Convert the value to a string, as Spark does for arguments of text functions."""
    if not castable(value.type, t.STRING):
        raise SpecError(f"{name} takes text, {value.sql} is {t.name(value.type)}")
    return cast(value, t.STRING)


def change_case(name: str, value: Expr) -> Expr:
    return call(cased, (text(name, value),), t.STRING, f"{name}({value.sql})", name)


@columnar
def cased(value: pa.Array, name: str) -> pa.Array:
    """Change case. Arrow maps each character to one, but Java does not: upper('ß') is 'SS'."""
    if pc.all(pc.string_is_ascii(value), min_count=0).as_py():
        return _ASCII[name](value)
    return pa.array([None if v is None else _UNICODE[name](v) for v in value.to_pylist()], t.STRING)


def trim(name: str, value: Expr) -> Expr:
    """Remove spaces at the ends: only spaces, as in Spark."""
    return call(trim_spaces, (text(name, value),), t.STRING, f"{name}({value.sql})", name)


def trim_spaces(value: Value, name: str) -> Value:
    return _SIDES[name](value, characters=" ")


def length(value: Expr) -> Expr:
    if value.type == t.BINARY:
        return call(compute, (value,), t.INT, f"length({value.sql})", "binary_length")
    return call(compute, (text("length", value),), t.INT, f"length({value.sql})", "utf8_length")


def concat(*values: Expr) -> Expr:
    sql = "concat(" + ", ".join(v.sql for v in values) + ")"
    return call(join_text, tuple(text("concat", v) for v in values), t.STRING, sql)


def concat_bytes(*values: Expr) -> Expr:
    sql = "concat(" + ", ".join(v.sql for v in values) + ")"
    return call(join_bytes, values, t.BINARY, sql)


def join_bytes(*values: Value) -> Value:
    return pc.binary_join_element_wise(*values, pa.scalar(b""), null_handling="emit_null")


def join_text(*values: Value) -> Value:
    return pc.binary_join_element_wise(*values, pa.scalar(""), null_handling="emit_null")


def substring(value: Expr, start: Expr, length: Expr | None = None) -> Expr:
    """Take characters from `start` (from 1; negative: from the end), at most `length`; both are constants."""
    first, count = whole("substring", start), None if length is None else whole("substring", length)
    parts = ", ".join(e.sql for e in (value, start, length) if e is not None)
    return call(slice_text, (text("substring", value),), t.STRING, f"substring({parts})", first, count)


def whole(name: str, value: Expr) -> int:
    """Return the value of a constant whole number.

    Raises:
        SpecError: if the expression is not one.
    """
    number = value.node.value.as_py() if isinstance(value.node, Literal) else None
    if not isinstance(number, int):
        raise SpecError(f"{name} takes a constant whole number, not {value.sql}")
    return number


def slice_text(value: Value, first: int, count: int | None) -> Value:
    if count is not None and count <= 0:
        return pc.if_else(pc.is_null(value), value, "")
    if first >= 0:
        start = max(first - 1, 0)
        return pc.utf8_slice_codeunits(value, start, None if count is None else start + count)
    return _slice_from_end(value, first, count)


@columnar
def _slice_from_end(value: pa.Array, first: int, count: int | None) -> pa.Array:
    return pa.array([_tail(v, first, count) for v in value.to_pylist()], t.STRING)


def _tail(value: str | None, first: int, count: int | None) -> str | None:
    """Count from before the text if it is shorter than -first: substring('ab', -3, 2) is 'a'."""
    if value is None:
        return None
    start = len(value) + first
    end = len(value) if count is None else start + count
    return value[max(start, 0) : max(end, 0)]


def replace(value: Expr, old: Expr, new: Expr) -> Expr:
    """Replace every occurrence of one constant text by another."""
    before, after = constant_text("replace", old), constant_text("replace", new)
    sql = f"replace({value.sql}, {old.sql}, {new.sql})"
    if not before:
        return text("replace", value)
    return call(replace_text, (text("replace", value),), t.STRING, sql, before, after)


def constant_text(name: str, value: Expr) -> str:
    found = value.node.value.as_py() if isinstance(value.node, Literal) else None
    if not isinstance(found, str):
        raise SpecError(f"{name} takes constant text, not {value.sql}")
    return found


def replace_text(value: Value, old: str, new: str) -> Value:
    return pc.replace_substring(value, old, new)


def like(value: Expr, pattern: Expr, escape: str = "\\") -> Expr:
    """Match an SQL pattern: % is any text, _ one character."""
    sql = (
        f"({value.sql} LIKE {pattern.sql})"
        if escape == "\\"
        else f"({value.sql} LIKE {pattern.sql} ESCAPE '{escape}')"
    )
    words = constant_text("LIKE", pattern)
    return call(match_text, (text("LIKE", value),), t.BOOLEAN, sql, regex(words, escape))


def regex(pattern: str, escape: str) -> str:
    """Translate the pattern to an RE2 expression for the whole text."""
    out, rest = [], iter(pattern)
    for c in rest:
        if c == escape:
            c = next(rest, "")
            if c not in ("%", "_", escape) or not c:
                raise SpecError(f"LIKE pattern {pattern!r}: {escape} may only come before %, _ or itself")
            out.append(_quoted(c))
        else:
            out.append({"%": ".*", "_": "."}.get(c) or _quoted(c))
    return "(?s)^" + "".join(out) + "$"


def _quoted(c: str) -> str:
    return c if c.isalnum() or ord(c) > 127 else "\\" + c


def match_text(value: Value, pattern: str) -> Value:
    return pc.match_substring_regex(value, pattern)
