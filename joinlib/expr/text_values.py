"""Reads values from text and writes them as text.

Law: as Spark does, in UTC; text that cannot be read is NULL.

Only distinct values are converted, in Python, about 1 µs each.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import types as t
from joinlib.expr.calendar import DAY_US, civil, days_of
from joinlib.expr.zones import near, zone_of

_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_MOMENT = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9}))?"
    r"\s*(\D.*)?)?)?)?)?)?",
    re.ASCII,
)
_ZONE = re.compile(
    r"(?:UTC|GMT|UT)?(?:([+-])(?:(\d{1,2})(?::([0-5]?\d)(?::([0-5]\d))?)?|(\d\d)([0-5]\d)([0-5]\d)?))?",
    re.ASCII,
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
# The characters that Java trims. Spark also trims DEL, except for floats and decimals.
_BLANK = "".join(map(chr, range(33)))
_BLANKS = _BLANK + "\x7f"
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_WIDE = Context(prec=120, rounding=ROUND_HALF_UP)


def from_text(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read a column of text."""
    made = pa.int64() if t.is_timestamp(kind) else pa.int32() if kind == t.DATE else kind
    return _distinct(value, lambda text: read_text(text, kind), made).cast(kind)


def read_text(text: str, kind: pa.DataType) -> Any:
    """Read a value, times as whole numbers; None if the text is none."""
    if t.is_decimal(kind):
        return _decimal(text, kind)
    if t.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        return _integer(text, int(limits.min), int(limits.max))
    if t.is_timestamp(kind):
        return _moment(text, kind == t.TIMESTAMP)
    return {t.DATE: _date, t.BOOLEAN: _boolean, t.DOUBLE: _float, t.FLOAT: _float}[kind](text)


def to_text(value: pa.Array) -> pa.Array:
    """Write a column as text."""
    kind = value.type
    if t.is_integer(kind) or kind == t.BOOLEAN:
        return value.cast(t.STRING)
    plain = value.cast(pa.int32() if kind == t.DATE else pa.int64()) if t.is_time(kind) else value
    return _distinct(plain, lambda one: write_text(one, kind), t.STRING)


def write_text(value: Any, kind: pa.DataType) -> str:
    """Write a value; times are whole numbers."""
    if kind == t.DATE:
        return _written_date(value)
    if t.is_float(kind):
        return java_float(value, np.float32 if kind == t.FLOAT else np.float64)
    if t.is_timestamp(kind):
        return _written_moment(value)
    if isinstance(value, bool):
        return str(value).lower()
    return format(value, "f") if t.is_decimal(kind) else str(value)


def from_decimal(value: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert to the nearest float: few digits by one exact division, others one distinct value at a time."""
    precision, scale = value.type.precision, value.type.scale
    if kind == t.DOUBLE and precision <= 15:
        whole = value.cast(pa.decimal128(38, scale)).view(pa.decimal128(38, 0)).cast(pa.int64())
        return pc.divide(whole.cast(t.DOUBLE), float(10**scale))
    return _distinct(value, float if kind == t.DOUBLE else _nearest_float, kind)


def _nearest_float(number: Decimal) -> float:
    """Round to a FLOAT directly: the nearest double may be midway between two floats when
    the number is not.
    """
    wide = float(number)
    near = np.float32(wide)
    if np.isinf(near):
        return float(near)
    other = np.nextafter(near, np.float32(np.inf if number > Decimal(float(near)) else -np.inf))
    midway = (Decimal(float(near)) + Decimal(float(other))) / 2
    if Decimal(wide) != midway or number == midway:
        return float(near)
    nearer = abs(number - Decimal(float(other))) < abs(number - Decimal(float(near)))
    return float(other if nearer else near)


def _distinct(value: pa.Array, of: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    encoded = value.dictionary_encode()
    values = pa.array([of(v) for v in encoded.dictionary.to_pylist()], kind)
    return values.take(encoded.indices)


def _integer(text: str, low: int, high: int) -> int | None:
    text = text.strip(_BLANKS)
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return None
    number = int(text)
    return number if low <= number <= high else None


def _float(text: str) -> float | None:
    text = text.strip(_BLANK).lower()
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", text):
        return float(text)
    number = text[:-1] if text[-1:] in ("f", "d") else text
    return float(number) if _NUMBER.fullmatch(number) else None


def _decimal(text: str, kind: pa.DataType) -> Decimal | None:
    text = text.strip(_BLANK)
    if not _NUMBER.fullmatch(text):
        return None
    try:
        rounded = Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
    except InvalidOperation:
        return None
    return rounded if rounded.copy_abs() < Decimal(10) ** (kind.precision - kind.scale) else None


def _boolean(text: str) -> bool | None:
    text = text.strip(_BLANKS).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def _date(text: str) -> int | None:
    """Read a date as days since 1970."""
    found = _DATE.fullmatch(text.strip(_BLANKS))
    days = days_of(int(found[1]), int(found[2] or 1), int(found[3] or 1)) if found else None
    return days if days is not None and -(2**31) <= days < 2**31 else None


_EPOCH = date(1970, 1, 1)


def _moment(text: str, zoned: bool) -> int | None:
    """Read a timestamp as microseconds since 1970."""
    found = _MOMENT.fullmatch(text.strip(_BLANKS))
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = days_of(int(year), int(month or 1), int(day or 1))
    of_day = [int(part or 0) for part in (hour, minute, second)]
    if days is None or any(n >= most for n, most in zip(of_day, (24, 60, 60))):
        return None
    seconds = of_day[0] * 3600 + of_day[1] * 60 + of_day[2]
    moved = shift(zone, days, seconds)
    if moved is None:
        return None
    micros = (
        days * DAY_US
        + (seconds - (moved if zoned else 0)) * 1_000_000
        + int((fraction or "").ljust(6, "0")[:6])
    )
    return micros if -(2**63) <= micros < 2**63 else None


def shift(zone: str | None, days: int, seconds: int) -> int | None:
    """Return how many seconds a zone is ahead of UTC at a local moment; None for an unknown zone."""
    if zone is None or zone == "Z":
        return 0
    if found := _ZONE.fullmatch(zone):
        sign, *parts = found.groups(default="0")
        hours, minutes, rest = (int(one) + int(two) for one, two in zip(parts[:3], parts[3:]))
        shift = hours * 3600 + minutes * 60 + rest
        return None if shift > 18 * 3600 else -shift if sign == "-" else shift
    try:
        moment = datetime.combine(_EPOCH, time(), zone_of(zone)) + timedelta(near(days), seconds)
        shifted = moment.utcoffset()
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        return None
    return None if shifted is None else round(shifted.total_seconds())


def _written_date(days: int) -> str:
    """Write days since 1970 as a date; years above 9999 have a sign, as in Java."""
    year, month, day = civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def _written_moment(micros: int) -> str:
    days, rest = divmod(micros, DAY_US)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{_written_date(days)} {text}" + (f".{fraction:06d}".rstrip("0") if fraction else "")


def java_float(number: float, of: Callable[[float], Any] = float) -> str:
    """Write a float as Java does: 1.0, 1.0E10, NaN, Infinity."""
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(of(number), unique=True, trim="0")
    mantissa, exponent = _two_digits(number, of) or np.format_float_scientific(
        of(number), unique=True, trim="0"
    ).split("e")
    return f"{mantissa}E{int(exponent)}"


def _two_digits(number: float, of: Callable[[float], Any]) -> list[str] | None:
    """The nearest number of two digits, which Java prefers to one of a single digit: 4.9E-324, not 5.0E-324."""
    near = f"{number:.1e}"
    return near.split("e") if of(float(near)) == of(number) else None
