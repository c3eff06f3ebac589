"""Functions of which one name has several forms: by the types of the arguments, or their number."""

import pyarrow as pa

from joinlib.expr import Expr, compare, dates, lists, logic, strings, text, time, units
from joinlib.expr import types as t
from joinlib.expr.cast import cast
from joinlib.expr.nodes import Literal, constant
from joinlib.expr.signatures import (
    INT,
    STRING,
    TIMESTAMP,
    anything,
    array,
    binary,
    row,
    row_call,
    text_or_binary,
    whole_number,
)  # fmt: skip


def coalesce(*values: Expr) -> Expr:
    """The first value that is not NULL."""
    sql = "coalesce(" + ", ".join(v.sql for v in values) + ")"
    conditions = [logic.negate(logic.is_null(v)) for v in values[:-1]]
    return logic.choose(conditions, list(values), sql)


def null_if(value: Expr, other: Expr) -> Expr:
    same = compare.compare("=", value, other)
    return logic.choose(
        [same], [constant(pa.scalar(None), "NULL"), value], f"nullif({value.sql}, {other.sql})"
    )


def if_(condition: Expr, value: Expr, otherwise: Expr) -> Expr:
    return logic.choose([condition], [value, otherwise], f"if({condition.sql}, {value.sql}, {otherwise.sql})")


def concat(*values: Expr) -> Expr:
    """Build concat, of texts, of bytes or of arrays."""
    if any(t.is_nested(v.type) for v in values):
        return lists.concatenated(*values)
    if all(v.type == t.BINARY for v in values):
        return text.concat_bytes(*values)
    return text.concat(*values)


def substring(value: Expr, start: Expr, length: Expr | None = None) -> Expr:
    """Build substring; places and lengths may be computed."""
    rest = [start] if length is None else [start, length]
    if value.type == t.BINARY or not all(isinstance(e.node, Literal) and e.type == t.INT for e in rest):
        kind = t.BINARY if value.type == t.BINARY else t.STRING
        takes = (INT,) * len(rest)
        return row(strings.substring, kind, text_or_binary, *takes).build("substring", value, *rest)
    return text.substring(value, start, length)


def replace(value: Expr, old: Expr, new: Expr | None = None) -> Expr:
    new = constant(pa.scalar(""), "''") if new is None else new
    if all(isinstance(e.node, Literal) and e.type == t.STRING for e in (old, new)):
        return text.replace(value, old, new)
    return row(strings.replace, t.STRING, STRING, STRING, STRING).build("replace", value, old, new)


def trim(name: str, first: Expr, second: Expr | None = None) -> Expr:
    """Build trim and the like: of spaces, or of characters, which come first but for btrim."""
    if second is None:
        return text.trim(name, first)
    value, characters = (first, second) if name == "btrim" else (second, first)
    of = {"ltrim": strings.trim_left, "rtrim": strings.trim_right}.get(name, strings.trim_both)
    return row(of, t.STRING, STRING, STRING).build(name, value, characters)


def padded(name: str, value: Expr, size: Expr, pad: Expr | None = None) -> Expr:
    """Build lpad and rpad, of text or of bytes."""
    of = strings.pad_left if name == "lpad" else strings.pad_right
    if value.type != t.BINARY:
        takes = (STRING, INT) if pad is None else (STRING, INT, STRING)
        return row(of, t.STRING, *takes).build(name, value, size, *([] if pad is None else [pad]))
    return row(of, t.BINARY, anything, INT, binary, least=2).build(
        name, value, size, *([] if pad is None else [pad])
    )


def cut(name: str, value: Expr, count: Expr) -> Expr:
    """Build left and right, of text or of bytes."""
    of = strings.left if name == "left" else strings.right
    kind = t.BINARY if value.type == t.BINARY else t.STRING
    return row(of, kind, text_or_binary, INT).build(name, value, count)


def reverse(value: Expr) -> Expr:
    if t.is_nested(value.type):
        return row_call("reverse", lists.reversed_, value.type, [array("reverse", value)])
    kind = t.BINARY if value.type == t.BINARY else t.STRING
    return row_call("reverse", lists.reversed_, kind, [text_or_binary("reverse", value)])


def sequence(start: Expr, stop: Expr, step: Expr | None = None) -> Expr:
    """Build the whole numbers or times from start to stop; both ends belong to it."""
    kind = t.common(start.type, stop.type)
    if kind is not None and t.is_time(kind):
        return dates.sequence(cast(start, kind), cast(stop, kind), step)
    given = [whole_number("sequence", e) for e in (start, stop, *[step] * (step is not None)) if e]
    widest = max((e.type for e in given), key=lambda k: k.bit_width)
    return row_call("sequence", lists.numbers, pa.list_(widest), [cast(e, widest) for e in given])


def date_trunc(unit: Expr, value: Expr) -> Expr:
    """Build date_trunc; a constant unit that there is takes Arrow's kernel."""
    known = unit.node.value.as_py() if isinstance(unit.node, Literal) else None
    if isinstance(known, str) and known.lower() in time.UNITS:
        return time.truncate(known, value)
    return row(dates.truncated_moment, t.TIMESTAMP, STRING, TIMESTAMP).build("date_trunc", unit, value)


def date_part(name: Expr, value: Expr) -> Expr:
    return units.extract(text.constant_text("date_part", name), value)


def decode(value: Expr, *rest: Expr) -> Expr:
    """Build the text of bytes (bytes, charset), or a choice (value, a, x, b, y, ..., otherwise), where NULL equals NULL."""
    if len(rest) == 1:
        return strings.DECODE.build("decode", value, *rest)
    pairs = list(zip(rest[::2], rest[1::2]))
    last = rest[-1] if len(rest) % 2 else constant(pa.scalar(None), "NULL")
    conditions = [compare.compare("<=>", value, known) for known, _ in pairs]
    sql = f"decode({', '.join(e.sql for e in (value, *rest))})"
    return logic.choose(conditions, [*(found for _, found in pairs), last], sql)


def nth(number: Expr, *values: Expr) -> Expr:
    """Build elt(number, value, ...): the value of that number."""
    kind = t.BINARY if all(v.type == t.BINARY for v in values) else t.STRING
    return row_call("elt", strings.nth, kind, [INT("elt", number), *(cast(v, kind) for v in values)], True)
