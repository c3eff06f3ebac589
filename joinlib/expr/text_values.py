"""How are values read from text and written as text? Law: as Spark does, in UTC; text that cannot be read is NULL.

Distinct values only are converted, in Python, about 1 µs each.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from joinlib.expr import types as t

_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_MOMENT = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?)?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?)?)?)?)?"
)
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_WIDE = Context(prec=120, rounding=ROUND_HALF_UP)


def from_text(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read a column of text."""
    if t.is_decimal(kind):
        return _distinct(value, lambda text: _decimal(text, kind), kind)
    if t.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return _distinct(value, lambda text: _integer(text, int(limits.min), int(limits.max)), kind)
    if t.is_timestamp(kind):
        return _distinct(value, lambda text: _moment(text, kind == t.TIMESTAMP), kind)
    readers: dict[pa.DataType, Callable[[str], Any]] = {
        t.BOOLEAN: _boolean, t.DATE: _date, t.DOUBLE: _float, t.FLOAT: _float,
    }  # fmt: skip
    return _distinct(value, readers[kind], kind)


def to_text(value: pa.Array) -> pa.Array:
    """Write a column as text."""
    kind = value.type
    if t.is_integer(kind) or kind in (t.BOOLEAN, t.DATE):
        return value.cast(t.STRING)
    if t.is_float(kind):
        short = np.float32 if kind == t.FLOAT else np.float64
        return _distinct(value, lambda number: java_float(number, short), t.STRING)
    if t.is_timestamp(kind):
        return _distinct(value, _written_moment, t.STRING)
    return _distinct(value, lambda number: format(number, "f"), t.STRING)


def _distinct(value: pa.Array, of: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    encoded = value.dictionary_encode()
    values = pa.array([of(v) for v in encoded.dictionary.to_pylist()], kind)
    return values.take(encoded.indices)


def _integer(text: str, low: int, high: int) -> int | None:
    text = text.strip()
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return None
    number = int(text)
    return number if low <= number <= high else None


def _float(text: str) -> float | None:
    text = text.strip().lower()
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", text):
        return float(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[fd]?", text, re.ASCII):
        return float(text.rstrip("fd"))
    return None


def _decimal(text: str, kind: pa.DataType) -> Decimal | None:
    try:
        number = Decimal(text.strip())
        rounded = number.quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
    except InvalidOperation:
        return None
    if not rounded.is_finite():
        return None
    return rounded if abs(rounded) < Decimal(10) ** (kind.precision - kind.scale) else None


def _boolean(text: str) -> bool | None:
    text = text.strip().lower()
    return True if text in _TRUE else False if text in _FALSE else None


def _date(text: str) -> date | None:
    found = _DATE.fullmatch(text.strip())
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1)) if found else None
    except ValueError:
        return None


def _moment(text: str, zoned: bool) -> datetime | None:
    found = _MOMENT.fullmatch(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    micros = int((fraction or "").ljust(6, "0")[:6])
    try:
        midnight = datetime(int(year), int(month or 1), int(day or 1), tzinfo=_zone(zone))
        moment = midnight.replace(
            hour=int(hour or 0), minute=int(minute or 0), second=int(second or 0), microsecond=micros
        )
    except ValueError:
        return None
    return moment.astimezone(UTC) if zoned else moment.replace(tzinfo=None)


def _zone(zone: str | None) -> timezone:
    found = re.fullmatch(r"([+-])(\d{1,2})(?::?(\d{2}))?", zone or "")
    if not found:
        return UTC
    shift = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(-shift if found[1] == "-" else shift)


def _written_moment(moment: datetime) -> str:
    text = moment.strftime("%H:%M:%S")
    if moment.microsecond:
        text += f".{moment.microsecond:06d}".rstrip("0")
    return f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d} {text}"


def java_float(number: float, of: Callable[[float], Any] = float) -> str:
    """Java's text of a float: 1.0, 1.0E10, NaN, Infinity."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(of(number), unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(of(number), unique=True, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"
