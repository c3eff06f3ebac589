"""How Debezium writes the values of a column, by the type that is declared for it.

    TIMESTAMP   a number, whose unit the message's schema says, or else the spec; ISO 8601 text with its zone
    DATE        days since 1970; text
    DECIMAL     text, a number, {"scale", "value"} or, where the schema says the scale, base64
    BINARY      base64
    others      as in JSON

Law: a value is read exactly, or its message is bad.
"""

import base64
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.source.kafka.bad import Bad
from joinlib.source.parse import timed
from joinlib.source.places import check_all

_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_DAYS = "days"
_SCALE = re.compile(r"-?[0-9]{1,9}")
_MOST_PLACES = 100  # more than any decimal has, and few enough for Arrow, which crashes by more than 2^26
_TIMES = {
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
    "io.debezium.time.Date": _DAYS,
    "org.apache.kafka.connect.data.Timestamp": "ms",
    "org.apache.kafka.connect.data.Date": _DAYS,
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_PRECISE = "let the connector write decimal.handling.mode: string, or messages with their schema"
_FAILED = (pa.ArrowException, TypeError, ValueError, KeyError, ArithmeticError)
_NO_NUMBERS = {"NaN", "Infinity", "-Infinity"}


class Meaning(NamedTuple):
    """What a schema says of a column beyond its JSON type."""

    name: str
    scale: int | None  # of Connect's decimals


Told = dict[str, Meaning]
Values = Sequence[Any]


def told(schema: Any, *of: str) -> Told:
    """Return what a schema says of the columns: its own, or those of its field `of`, the first that is there.

    What is no schema says nothing.
    """
    inner = [f for name in of for f in _fields(schema) if f.get("field") == name]
    found = {}
    for one in _fields(inner[0] if inner else schema):
        meaning, column = one.get("name"), one.get("field")
        if isinstance(meaning, str) and isinstance(column, str):
            more = one.get("parameters")
            scale = str(more.get("scale")) if isinstance(more, dict) else ""
            found[column] = Meaning(meaning, int(scale) if _SCALE.fullmatch(scale) else None)
    return found


def placeholders(text: str, kind: pa.DataType) -> list[Any]:
    """Return what stands for a value of a type that was not sent, where `text` is the connector's placeholder."""
    raw = text.encode()
    if pt.is_binary(kind):
        return [text, base64.b64encode(raw).decode(), raw.hex()]
    if pt.is_list(kind):
        return [[text], list(raw), text]
    if pt.is_map(kind):
        return [{text: text}, text]
    return [text, f'{{"{text}":"{text}"}}'] if pt.is_string(kind) else [text]


def column(field: pa.Field, values: Values, meaning: Meaning | None, unit: str) -> pa.Array:
    """Return values as a column of the declared type.

    Args:
        field: The declared column.
        values: Its values, as JSON has them.
        meaning: What the message's schema says of it.
        unit: The unit of numbers that are timestamps, where there is no schema.

    Raises:
        Bad: A value does not fit the type.
    """
    name, kind = field.name, field.type
    try:
        made = _kernel(kind)(values, kind, meaning, _UNITS[unit])
    except _FAILED:
        mend = f"; {_PRECISE}" if pt.is_decimal(kind) else ""
        raise Bad(f"the value of column '{name}' does not fit {kind}{mend}") from None
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _kernel(kind: pa.DataType) -> Callable[..., pa.Array | pa.ChunkedArray]:
    if pt.is_timestamp(kind) or pt.is_date(kind):
        return _times
    if pt.is_decimal(kind):
        return _decimals
    if pt.is_binary(kind):
        return _binaries
    if pt.is_floating(kind):
        return _floats
    if pt.is_integer(kind):
        return _integers
    return _nested if pt.is_nested(kind) else _plain


def _plain(values: Values, kind: pa.DataType, meaning: Meaning | None, unit: str) -> pa.Array:
    return pa.array(values, kind)


def _integers(values: Values, kind: pa.DataType, meaning: Meaning | None, unit: str) -> pa.Array:
    if any(type(v) is float for v in values):  # pa.array would cut off what is behind the point
        values = [_whole(v) if type(v) is float else v for v in values]
    return pa.array(values, kind)


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError
    return int(value)


def _floats(values: Values, kind: pa.DataType, meaning: Meaning | None, unit: str) -> pa.Array:
    return pa.array([float(v) if type(v) is str and v in _NO_NUMBERS else v for v in values], kind)


def _binaries(values: Values, kind: pa.DataType, meaning: Meaning | None, unit: str) -> pa.Array:
    return pa.array([None if v is None else base64.b64decode(v, validate=True) for v in values], kind)


def _times(
    values: Values, kind: pa.DataType, meaning: Meaning | None, unit: str
) -> pa.Array | pa.ChunkedArray:
    """Read numbers and texts, of which a column has one sort, except where its type has changed."""
    if not all(v is None or type(v) in (int, str) for v in values):
        raise ValueError
    texts = timed(
        pa.chunked_array([pa.array([v if type(v) is str else None for v in values], pa.string())]), kind
    )
    numbers = pa.array([v if type(v) is int else None for v in values], pa.int64())
    if numbers.null_count == len(numbers):
        return texts
    default = _DAYS if pt.is_date(kind) else unit
    unit = _TIMES[meaning.name] if meaning is not None else default
    if unit == _DAYS:
        return pc.coalesce(texts, pc.cast(pc.cast(numbers, pa.int32()), pa.date32()).cast(kind))
    if pt.is_date(kind):
        raise ValueError
    exact = pc.cast(numbers, pa.timestamp(unit)).cast(pa.timestamp("us"))
    return pc.coalesce(texts, exact.view(pa.int64()).cast(kind))


def _decimals(values: Values, kind: pa.DataType, meaning: Meaning | None, unit: str) -> pa.Array:
    scale = meaning.scale if meaning is not None and meaning.name == _DECIMAL else None
    if scale is None and all(v is None or type(v) is str for v in values):
        texts = pa.array(values, pa.string())
        check_all(texts)
        return texts.cast(kind)
    return pa.array([None if v is None else _decimal(v, scale) for v in values], kind)


def _decimal(value: Any, scale: int | None) -> Decimal:
    """Return a number exactly; base64 holds it without its point, for which the scale must be known."""
    if isinstance(value, dict):
        found = _unscaled(value["value"], value["scale"])
    elif type(value) is str and scale is not None:
        found = _unscaled(value, scale)
    elif type(value) in (int, float, str):
        found = Decimal(str(value))
    else:
        raise ValueError
    places = found.as_tuple().exponent
    if not isinstance(places, int) or abs(places) > _MOST_PLACES:
        raise ValueError
    return found


def _unscaled(text: str, scale: int) -> Decimal:
    digits = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    return Decimal(f"{digits}E{-scale}")


def _nested(values: Values, kind: pa.DataType, meaning: Meaning | None, unit: str) -> pa.Array:
    """Read arrays, maps and structs of values that are as in JSON."""
    if any(pt.is_temporal(k) or pt.is_decimal(k) or pt.is_binary(k) for k in _inner(kind)):
        raise ValueError
    if pt.is_map(kind):
        if not all(v is None or isinstance(v, dict) for v in values):
            raise ValueError
        values = [None if v is None else list(v.items()) for v in values]
    return pa.array(values, kind)


def _inner(kind: pa.DataType) -> list[pa.DataType]:
    if not pt.is_nested(kind):
        return [kind]
    return [t for at in range(kind.num_fields) for t in _inner(kind.field(at).type)]


def _fields(schema: Any) -> list[dict[str, Any]]:
    found = schema.get("fields") if isinstance(schema, dict) else None
    return [f for f in found if isinstance(f, dict)] if isinstance(found, list) else []
