"""Functions that write numbers in other ways, and read them, one row at a time."""

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr import signatures as s
from joinlib.expr import types as t
from joinlib.expr.rows import NoValueError
from joinlib.expr.signatures import Signature, row
from joinlib.expr.text_values import java_float

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_U64 = 2**64


def binary(number: int) -> str:
    return format(number % _U64, "b")


def hexadecimal(value: Any) -> str:
    if isinstance(value, int):
        return format(value % _U64, "X")
    return (value.encode() if isinstance(value, str) else value).hex().upper()


def from_hex(text: str) -> bytes | None:
    try:
        return bytes.fromhex("0" * (len(text) % 2) + text) if text.isascii() and " " not in text else None
    except ValueError:
        return None


def strict_hex(text: str) -> bytes:
    found = from_hex(text)
    if found is None:
        raise NoValueError("malformed hexadecimal text")
    return found


def converted(text: str, base: int, to: int) -> str | None:
    """Write a number in another base (conv); a negative `to` writes it with a sign."""
    text = text.strip(" ")
    if not (2 <= base <= 36 and 2 <= abs(to) <= 36) or not text:
        return None
    negative, number = text.startswith("-"), _leading(text.removeprefix("-"), base)
    above = number >= 2**63  # as 64 bits with a sign it is below zero
    if to > 0:
        number = number if not negative else _U64 - 1 if above else -number % _U64
        return _in_base(number, to)
    return "-" * (negative or above) + _in_base(_U64 - number if above else number, -to)


def _leading(text: str, base: int) -> int:
    """Read the digits with which a text begins."""
    number = 0
    for c in text:
        digit = _DIGITS.find(c.upper()) if c.isascii() else -1
        if not 0 <= digit < base:
            break
        number = number * base + digit
    if number >= _U64:
        raise NoValueError("overflow: conv reads 64 bits")
    return number


def _in_base(number: int, base: int) -> str:
    out = ""
    while number:
        number, digit = divmod(number, base)
        out = _DIGITS[digit] + out
    return out or "0"


def format_number(value: Any, digits: Any) -> str | None:
    """Write with commas and this many decimals, or by a pattern such as '#,###.00'."""
    if isinstance(digits, str):
        return _by_pattern(value, digits)
    if digits < 0:
        return None
    if isinstance(value, float) and not abs(value) < float("inf"):
        return _endless(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    found = exact.quantize(Decimal(1).scaleb(-digits), context=Context(400, ROUND_HALF_EVEN))
    return f"{found:,f}"


def _endless(value: float) -> str:
    return "NaN" if value != value else "∞" if value > 0 else "-∞"


def _by_pattern(value: Any, pattern: str) -> str:
    found = re.fullmatch(r"([#,0]*)(?:\.([0#]*))?", pattern or "#,###,###,###,###,###,##0")
    if not found:
        raise NoValueError("format_number takes a pattern of # 0 , and one point")
    whole, fraction = found[1], found[2] or ""
    group = len(whole) - whole.rindex(",") - 1 if "," in whole else 0
    if isinstance(value, float) and not abs(value) < float("inf"):
        return _endless(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    text = f"{exact.copy_abs().quantize(Decimal(1).scaleb(-len(fraction)), context=Context(400, ROUND_HALF_EVEN)):f}"
    digits, _, rest = text.partition(".")
    digits = digits.lstrip("0").rjust(whole.count("0") or (whole != "" and "0" not in fraction), "0")
    least = fraction.count("0")
    rest = rest[:least] + rest[least:].rstrip("0")
    digits = digits or "0" * (not rest)
    if group:
        digits = re.sub(rf"(?<=\d)(?=(?:\d{{{group}}})+$)", ",", digits)
    return "-" * exact.is_signed() + digits + ("." + rest if rest else "")


_SPEC = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")


def printf(template: str, *values: Any) -> str:
    """Java's String.format, in English (format_string). The last value is the types of the arguments."""
    *given, kinds = values
    at = iter(range(len(given)))

    def one(found: re.Match[str]) -> str:
        place, flags, width, digits, letter = found.groups()
        if letter in "n%":
            return _padded("%", flags, width) if letter == "%" else "\n"
        number = int(place) - 1 if place else next(at, len(given))
        if number >= len(given):
            raise NoValueError("format_string has fewer arguments than places")
        return _padded(_printed(given[number], kinds[number + 1], flags, width, digits, letter), flags, width)

    rest = _SPEC.sub("", template)
    if "%" in rest:
        raise NoValueError("format_string: what follows % is not a format")
    return _SPEC.sub(one, template)


def _padded(text: str, flags: str, width: str | None) -> str:
    size = int(width or 0)
    return text.ljust(size) if "-" in flags else text.rjust(size)


def _printed(
    value: Any, kind: pa.DataType, flags: str, width: str | None, digits: str | None, letter: str
) -> str:
    lower = letter.lower()
    if lower == "s":
        text = "null" if value is None else _shown(value, kind)
        text = text[: int(digits)] if digits else text
        return text.upper() if letter == "S" else text
    if lower == "b":
        text = str(value is not None and value is not False).lower()
        return text.upper() if letter == "B" else text
    if value is None:
        return ("NULL" if letter.isupper() else "null")[: int(digits) if digits else None]
    return _number(value, flags, width, digits, letter, kind)


def _number(
    value: Any, flags: str, width: str | None, digits: str | None, letter: str, kind: pa.DataType
) -> str:
    lower = letter.lower()
    fits: dict[str, type] = {
        "d": int,
        "x": int,
        "o": int,
        "c": int,
        "f": float,
        "e": float,
        "g": float,
    }
    known = lower in fits and isinstance(value, fits[lower])
    if not known:
        raise NoValueError(f"format_string: %{letter} does not fit its argument")
    if lower == "c":
        return chr(value)
    if lower in "xo":
        text = format(value % 2**kind.bit_width, letter)
        return text.rjust(int(width), "0") if "0" in flags and width else text
    minus = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
    if isinstance(value, float) and not abs(value) < float("inf"):
        return _never_padded(value, flags)
    text = _absolute(value, lower, digits)
    if "," in flags and lower in "df":
        whole, point, rest = text.partition(".")
        text = f"{int(whole):,}" + point + rest
    sign = "-" if minus else "+" if "+" in flags else " " if " " in flags else ""
    if "(" in flags and minus:
        return f"({text})"
    if "0" in flags and width:
        text = text.rjust(int(width) - len(sign), "0")
    return sign + (text.upper() if letter.isupper() else text)


def _never_padded(value: float, flags: str) -> str:
    """Write NaN, which has no sign, or an infinity."""
    if value != value:
        return "NaN"
    if value < 0:
        return "(Infinity)" if "(" in flags else "-Infinity"
    return "+Infinity" if "+" in flags else " Infinity" if " " in flags else "Infinity"


def _absolute(value: Any, letter: str, digits: str | None) -> str:
    if letter == "d":
        return str(abs(value))
    count = int(digits or 6)
    exact = Decimal(repr(value)) if isinstance(value, float) else value
    with localcontext(Context(400, ROUND_HALF_UP)):
        if letter == "f":
            return f"{abs(exact).quantize(Decimal(1).scaleb(-count)):f}"
        if letter == "g":
            return _general(abs(exact), count or 1)
        return _scientific(abs(exact), count)


def _general(value: Decimal, count: int) -> str:
    """Write so many digits: with an exponent only below 0.0001, or where the whole part has more."""
    if not value:
        return f"{0:.{count - 1}f}"
    rounded = value.quantize(Decimal(1).scaleb(value.adjusted() + 1 - count))
    if Decimal("0.0001") <= rounded < Decimal(10) ** count:
        return f"{rounded.quantize(Decimal(1).scaleb(rounded.adjusted() + 1 - count)):f}"
    return _scientific(value, count - 1)


def _scientific(value: Decimal, count: int) -> str:
    if not value:
        return f"{0:.{count}f}e+00"
    exponent = value.adjusted()
    scaled = value.scaleb(-exponent).quantize(Decimal(1).scaleb(-count))
    if scaled >= 10:
        exponent, scaled = exponent + 1, (scaled / 10).quantize(Decimal(1).scaleb(-count))
    return f"{scaled:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _shown(value: Any, kind: pa.DataType) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return java_float(value, np.float32 if kind == t.FLOAT else float)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _number_or_text(name: str, value: Expr) -> Expr:
    if value.type in (t.BINARY, t.NULL) or t.is_string(value.type):
        return s.text_or_binary(name, value)
    return s.BIGINT(name, value)


def _digits_or_pattern(name: str, value: Expr) -> Expr:
    return value if t.is_string(value.type) else s.INT(name, value)


def _kinds(of: Callable[..., Any], result: pa.DataType, *takes: s.Converter, least: int) -> Signature:
    return row(of, result, *takes, least=least, repeats=True, lenient=True, kinds=True)


def format_string(template: str | None, *values: Any) -> str | None:
    return None if template is None else printf(template, *values)


FUNCTIONS: dict[str, Signature] = {
    "bin": row(binary, t.STRING, s.BIGINT),
    "hex": row(hexadecimal, t.STRING, _number_or_text),
    "unhex": row(from_hex, t.BINARY, s.STRING),
    "conv": row(converted, t.STRING, s.STRING, s.INT, s.INT),
    "format_number": row(format_number, t.STRING, s.number, _digits_or_pattern),
    "format_string": _kinds(format_string, t.STRING, s.STRING, s.anything, least=1),
    "printf": _kinds(format_string, t.STRING, s.STRING, s.anything, least=1),
}
