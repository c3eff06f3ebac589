"""Which column of a table holds which column of the result? Pure.

A column fits if it holds every value of the result's type; what fits for some values only would end a job in
the middle. Text goes into everything that PostgreSQL reads from text (uuid, json, enums, inet), by a cast.
"""

from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types as t

_INTEGERS = {"int2": 2, "int4": 4, "int8": 8}
_STRINGS = ("text", "varchar", "bpchar", "name", "citext")
_DOCUMENTS = ("json", "jsonb")
_READ_FROM_TEXT = ("U", "E", "I")  # categories of types: uuid, json and the like; enums; networks


@dataclass(frozen=True)
class TableColumn:
    """A column of the table, as the catalog describes it."""

    name: str
    kind: str  # name of its type, or of the type below a domain
    category: str  # of that type
    modifier: int  # of that type; -1: none
    spoken: str  # its type as SQL writes it
    required: bool  # NOT NULL
    default: bool  # it has a value if none is given
    generated: bool  # no value may be given


def staged(kind: pa.DataType) -> str:
    """Return the type of a staging column that holds this type of the result."""
    if t.is_decimal(kind):
        return "numeric"
    if t.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    known = {
        pa.bool_(): "boolean",
        pa.int8(): "smallint",
        pa.int16(): "smallint",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.binary(): "bytea",
        pa.date32(): "date",
    }
    return known.get(kind, "text")  # strings, and what is written as JSON


def cast(kind: pa.DataType, column: TableColumn) -> str | None:
    """Return the type to cast to, or None if the value is assigned as it is."""
    is_text = staged(kind) == "text" and column.kind not in _STRINGS
    return column.spoken if is_text else None


def fits(kind: pa.DataType, column: TableColumn) -> bool:
    """Return whether the column holds every value of this type."""
    if t.is_null(kind):
        return True
    if t.is_integer(kind):
        return _holds_integer(kind.bit_width // 8, column)
    if t.is_decimal(kind):
        return column.kind == "numeric" and _digits_fit(kind.precision, kind.scale, column.modifier)
    if t.is_string(kind) or t.is_large_string(kind):
        return column.kind in _STRINGS or (column.category in _READ_FROM_TEXT and column.kind != "bytea")
    if t.is_nested(kind):
        return column.kind in _DOCUMENTS
    if t.is_timestamp(kind):
        return column.kind == ("timestamptz" if kind.tz else "timestamp")
    wanted = {
        pa.bool_(): ("bool",),
        pa.float32(): ("float4", "float8"),
        pa.float64(): ("float8",),
        pa.binary(): ("bytea",),
        pa.date32(): ("date",),
    }
    return column.kind in wanted.get(kind, ())


def _holds_integer(width: int, column: TableColumn) -> bool:
    if column.kind == "numeric":
        return _digits_fit(len(str(2 ** (8 * width - 1))), 0, column.modifier)
    if column.kind in ("float4", "float8"):
        return width <= {"float4": 2, "float8": 4}[column.kind]
    return width <= _INTEGERS.get(column.kind, 0)


def _digits_fit(precision: int, scale: int, modifier: int) -> bool:
    """Return whether numeric of this modifier holds so many digits, `scale` of them behind the point."""
    if modifier < 0:
        return True
    most = ((modifier - 4) >> 16) & 0xFFFF
    behind = (((modifier - 4) & 0x7FF) ^ 1024) - 1024
    return behind >= scale and most - behind >= precision - scale
