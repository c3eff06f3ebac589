"""Parameters of a spec: values that the SQL names as ${day}.
Law: a parameter is a value, never a piece of SQL.

parameters:
  limit: 5                                       # INT, as 5 in the SQL
  cities: [Berlin, Oslo]                         # for IN (${cities})
  day: {type: DATE, value: 2026-01-01}
  patience: {type: INTERVAL, value: 90 minutes}
"""

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from joinlib.spec import ddl

Scalar = str | int | float | bool
INTERVAL = "INTERVAL"
_AMOUNTS = re.compile(r"\s*(-?\d+(\.\d+)?\s+[A-Za-z]+\s*)+")


@dataclass(frozen=True)
class Parameter:
    """A value, or several for IN. `type`: as in a schema, or INTERVAL; None: that of the value as written."""

    values: tuple[Scalar | None, ...]
    type: str | None = None
    many: bool = False

    @property
    def sql(self) -> str:
        """The value as SQL: a literal, or a list of them."""
        return ", ".join(_literal(value, self.type) for value in self.values)


def _literal(value: Scalar | None, kind: str | None) -> str:
    if kind == INTERVAL:
        return f"INTERVAL {_quoted(str(value))}"
    if kind is not None:
        return f"CAST({'NULL' if value is None else _quoted(_said(value))} AS {kind})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _quoted(value)
    return f"({value})" if value is not None and value < 0 else str(value)


def _said(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_interval(text: str) -> bool:
    """Whether INTERVAL and this text are an interval, units and all."""
    return _AMOUNTS.fullmatch(text) is not None


def _parameter(given: object) -> Parameter:
    if isinstance(given, Parameter):
        return given
    if not isinstance(given, Mapping):
        return _of(given, None)
    if unknown := sorted(map(str, set(given) - {"type", "value"})):
        msg = f"has {', '.join(unknown)}; write a value, or {{type: DATE, value: 2026-01-01}}"
        raise ValueError(msg)
    if "value" not in given or "type" not in given:
        msg = "needs type and value, as in {type: DATE, value: 2026-01-01}"
        raise ValueError(msg)
    return _of(given["value"], _type(given["type"]))


def _of(given: object, kind: str | None) -> Parameter:
    many = isinstance(given, list | tuple)
    values: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    if not values:
        msg = "is an empty list, and IN () is no SQL; add a value"
        raise ValueError(msg)
    return Parameter(tuple(_scalar(value, kind) for value in values), kind, many)


def _scalar(value: object, kind: str | None) -> Scalar | None:
    if isinstance(value, datetime.date) and kind is not None:  # datetime too
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, datetime.date):
        of = "TIMESTAMP" if isinstance(value, datetime.datetime) else "DATE"
        msg = f"is a date of YAML, which says no type of SQL; write {{type: {of}, value: {value}}}"
        raise ValueError(msg)  # noqa: TRY004  pydantic collects ValueError only
    if value is None and kind in (None, INTERVAL):
        msg = "is empty; write a value, or {type: STRING, value: null}"
        raise ValueError(msg)
    if isinstance(value, float) and not math.isfinite(value):
        msg = f"{value} is no number of SQL; write {{type: DOUBLE, value: 'NaN'}}, or Infinity"
        raise ValueError(msg)
    if value is not None and not isinstance(value, str | int | float):
        msg = "is neither text, number nor truth value; write one, or a list of them"
        raise ValueError(msg)
    if kind == INTERVAL and not is_interval(str(value)):
        msg = f"{value!r} is no INTERVAL; write 90 minutes, or 1 hour 30 minutes"
        raise ValueError(msg)
    return value


def _type(given: object) -> str:
    text = str(given).strip()
    if text.upper() == INTERVAL:
        return INTERVAL
    if not re.fullmatch(r"[A-Za-z_]+(\(\s*\d+\s*(,\s*\d+\s*)?\))?", text):
        msg = f"{text!r} is not the type of a single value; write DATE, DECIMAL(10, 2), INTERVAL or the like"
        raise ValueError(msg)
    ddl.parse(f"value {text}")  # raises ValueError for a type that there is not
    return text.upper()


def _written(given: Parameter) -> object:
    value = list(given.values) if given.many else given.values[0]
    return value if given.type is None else {"type": given.type, "value": value}


def _named(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w{0,62}", value, re.ASCII):
        msg = f"{value!r} is not a name for a parameter; write letters, digits and '_', at most 63"
        raise ValueError(msg)
    return value


ParameterName = Annotated[str, AfterValidator(_named)]
ParameterValue = Annotated[
    Parameter,
    BeforeValidator(_parameter),
    PlainSerializer(_written),
    WithJsonSchema(
        {
            "description": "Text, a number, a truth value, a list of them for IN, or {type, value}.",
            "x-kubernetes-preserve-unknown-fields": True,
            "examples": [5, "Berlin", {"type": "DATE", "value": "2026-01-01"}],
        }
    ),
]
