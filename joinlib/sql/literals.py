"""Reads numbers, intervals and type names of the text."""

import re
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.nodes import constant
from joinlib.expr.time import interval

_UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SPANS = {
    ("DAY", "HOUR"): r"(\d+) (\d+)",
    ("DAY", "MINUTE"): r"(\d+) (\d+):(\d+)",
    ("DAY", "SECOND"): r"(\d+) (\d+):(\d+):(\d+(?:\.\d+)?)",
    ("HOUR", "MINUTE"): r"(\d+):(\d+)",
    ("HOUR", "SECOND"): r"(\d+):(\d+):(\d+(?:\.\d+)?)",
    ("MINUTE", "SECOND"): r"(\d+):(\d+(?:\.\d+)?)",
    ("YEAR", "MONTH"): r"(\d+)-(\d+)",
}
_ORDER, _MONTH_ORDER = ("DAY", "HOUR", "MINUTE", "SECOND"), ("YEAR", "MONTH")


def number_of(text: str) -> Expr:
    """Read a number: 1 is INT (or BIGINT), 1.5 is DECIMAL, 1e3 is DOUBLE.

    Raises:
        SpecError: if it has too many digits.
    """
    if re.fullmatch(r"-?\d+", text):
        number = int(text)
        for kind in (t.INT, t.BIGINT):
            if -(2 ** (kind.bit_width - 1)) <= number < 2 ** (kind.bit_width - 1):
                return constant(pa.scalar(number, kind), text)
        return _decimal(text)
    if "e" in text.lower():
        return constant(pa.scalar(float(text), t.DOUBLE), text.upper())
    return _decimal(text)


def _decimal(text: str) -> Expr:
    value = Decimal(text)
    scale = -int(value.as_tuple().exponent)
    precision = max(len(value.as_tuple().digits), scale)
    if precision > t.MAX_PRECISION:
        raise SpecError(f"{text} has more than {t.MAX_PRECISION} digits")
    return constant(pa.scalar(value, pa.decimal128(precision, scale)), text)


def interval_of(node: exp.Expr) -> Expr:
    """Read an interval.

    Forms: INTERVAL 2 HOURS, INTERVAL '5' MINUTES, INTERVAL '1 12' DAY TO HOUR, INTERVAL '1 hour 5 minutes'.

    Raises:
        SpecError: if it cannot be read, or mixes months with days or less.
    """
    text, unit = _amount(node.this), node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return _span(text, unit.this.name.upper(), unit.expression.name.upper())
    if unit is not None:
        return _sum([(text, unit.name)], text)
    return _sum(re.findall(r"([+-]?[\d.]+)\s*([a-zA-Z]+)", text), text)


def _amount(node: exp.Expr | None) -> str:
    if isinstance(node, exp.Neg | exp.Paren):
        return ("-" if isinstance(node, exp.Neg) else "") + _amount(node.this)
    if not isinstance(node, exp.Literal):
        raise SpecError("INTERVAL takes a constant")
    return str(node.name).strip()


def _sum(parts: list[tuple[str, str]], text: str) -> Expr:
    months, micros, days_only = 0, Decimal(0), True
    for amount, word in parts:
        unit = word.upper().removesuffix("S")
        if unit not in _UNITS and unit not in _MONTHS:
            raise SpecError(f"INTERVAL: unit {word!r} is not one of {', '.join([*_UNITS, *_MONTHS])}")
        if not re.fullmatch(r"[+-]?\d+(\.\d+)?", amount) or ("." in amount and unit != "SECOND"):
            raise SpecError(f"INTERVAL: {amount!r} is not a whole number")
        months += int(amount) * _MONTHS[unit] if unit in _MONTHS else 0
        micros += Decimal(amount) * _UNITS.get(unit, 0)
        days_only = days_only and unit in ("DAY", "WEEK")
    if not parts:
        raise SpecError(f"INTERVAL {text!r} cannot be read; write INTERVAL 2 HOURS")
    if months and micros:
        raise SpecError("an INTERVAL has months or days and less, not both; add them one after the other")
    return interval(months, int(micros), days_only)


def _span(text: str, first: str, last: str) -> Expr:
    sign = "-" if text.startswith("-") else ""
    if (first, last) not in _SPANS:
        raise SpecError(f"INTERVAL {first} TO {last} is not supported")
    order = _MONTH_ORDER if first == "YEAR" else _ORDER
    units = order[order.index(first) : order.index(last) + 1]
    found = re.fullmatch(_SPANS[first, last], text.lstrip("+-"))
    if not found:
        raise SpecError(f"INTERVAL {text!r} does not fit {first} TO {last}")
    return _sum([(sign + n, u) for n, u in zip(found.groups(), units, strict=True)], text)


_TYPES = {
    "TINYINT": t.TINYINT, "SMALLINT": t.SMALLINT, "INT": t.INT, "BIGINT": t.BIGINT, "FLOAT": t.FLOAT,
    "DOUBLE": t.DOUBLE, "BOOLEAN": t.BOOLEAN, "TEXT": t.STRING, "DATE": t.DATE, "TIMESTAMPTZ": t.TIMESTAMP,
    "TIMESTAMPLTZ": t.TIMESTAMP, "TIMESTAMP": t.TIMESTAMP, "TIMESTAMPNTZ": t.TIMESTAMP_NTZ, "BINARY": t.BINARY,
}  # fmt: skip


def type_of(node: exp.DataType) -> pa.DataType:
    """Return the type that a CAST names.

    Raises:
        SpecError: if it is not supported.
    """
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    if name == "DECIMAL":
        sizes = [int(p.name) for p in node.expressions] or [10, 0]
        if not (0 < sizes[0] <= t.MAX_PRECISION and 0 <= (sizes[1:] or [0])[0] <= sizes[0]):
            raise SpecError(f"DECIMAL{tuple(sizes)} is not a type: at most {t.MAX_PRECISION} digits")
        return pa.decimal128(sizes[0], (sizes[1:] or [0])[0])
    if name in ("ARRAY", "MAP") and node.expressions:
        inner = [type_of(e) for e in node.expressions]
        return pa.list_(inner[0]) if name == "ARRAY" else pa.map_(*inner)
    if name == "STRUCT" and node.expressions:
        return pa.struct([pa.field(e.name, type_of(e.args["kind"])) for e in node.expressions])
    if name not in _TYPES or node.expressions:
        raise SpecError(f"CAST to {node.sql(dialect='spark')} is not supported")
    return _TYPES[name]
