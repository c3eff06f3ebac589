"""Packs ARRAYs, STRUCTs, MAPs and INTERVALs into bytes that sort as they do, for groups and aggregates, which keep their
values in order.

    NULL       00                      whole numbers and times   01, 8 bytes from the least to the greatest
    BOOLEAN    01, a byte              DOUBLE, FLOAT             01, 8 bytes, NaN last, -0.0 as 0.0
    DECIMAL    01, 16 bytes            STRING, BINARY            01, its bytes with 00 as 00 FF, 00 00
    STRUCT     01, its fields          ARRAY, MAP                01, each element behind 01, 00

Law: `unpacked` is the inverse of `packed`, but for -0.0; of two values, the packed ones compare as Spark compares them: NULL
first, then field by field, and a list that ends before a longer one that begins with it. A MAP has no order in Spark; here
it is that of its entries as they stand.
"""

import math
from decimal import Context, Decimal
from struct import Struct
from typing import Any

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.expr import types as t
from joinlib.expr.signatures import row_call

_HALF, _WIDE = 1 << 63, 1 << 127  # the zero of 8 and of 16 bytes
_ALL = (1 << 64) - 1
_DOUBLE, _BITS = Struct(">d"), Struct(">Q")
_EXACT = Context(prec=40)  # a DECIMAL has 38 digits


def packs(kind: pa.DataType) -> bool:
    """Return whether values of a type are kept packed."""
    return t.is_nested(kind) or kind == t.INTERVAL


def pack(value: Expr) -> Expr:
    """Build the packed form of a value, as BINARY; a value of another type stays what it is."""
    if not packs(value.type):
        return value
    return row_call("packed", packed, pa.binary(), [value], more=(value.type,))


def unpack(value: Expr, kind: pa.DataType) -> Expr:
    """Build what `pack` has made of a value of this type."""
    if not packs(kind):
        return value
    made = row_call("unpacked", unpacked, kind, [value], more=(kind,))
    return Expr(value.sql, made.columns, made.type, made.node)


def unpack_list(values: Expr, kind: pa.DataType) -> Expr:
    """Build what `pack` has made of each element of a list."""
    made = row_call("unpacked", unpacked_list, pa.list_(kind), [values], more=(kind,))
    return Expr(values.sql, made.columns, made.type, made.node)


def packed(value: Any, kind: pa.DataType) -> bytes:
    """Pack a plain value (`rows.plain`)."""
    return b"\0" if value is None else b"\1" + _body(value, kind)


def unpacked(data: bytes, kind: pa.DataType) -> Any:
    return _read(data, 0, kind)[0]


def unpacked_list(values: list[bytes | None], kind: pa.DataType) -> list[Any]:
    return [None if value is None else unpacked(value, kind) for value in values]


def _body(value: Any, kind: pa.DataType) -> bytes:
    if t.is_struct(kind):
        return b"".join(packed(value[field.name], field.type) for field in kind)
    if t.is_list(kind):
        return b"".join(b"\1" + packed(one, kind.value_type) for one in value) + b"\0"
    if t.is_map(kind):
        entries = (packed(key, kind.key_type) + packed(item, kind.item_type) for key, item in value)
        return b"".join(b"\1" + entry for entry in entries) + b"\0"
    if t.is_text(kind):
        data = value.encode() if isinstance(value, str) else value
        return bytes(data).replace(b"\0", b"\0\xff") + b"\0\0"
    if t.is_decimal(kind):
        return (int(value.scaleb(kind.scale, _EXACT)) + _WIDE).to_bytes(16)
    if kind == t.BOOLEAN:
        return bytes([value])
    return (_float(value) if t.is_float(kind) else value + _HALF).to_bytes(8)


def _float(value: float) -> int:
    """A number that sorts as a DOUBLE does."""
    (bits,) = _BITS.unpack(_DOUBLE.pack(math.nan if math.isnan(value) else value + 0.0))
    return int(~bits & _ALL if bits >= _HALF else bits | _HALF)


def _read(data: bytes, at: int, kind: pa.DataType) -> tuple[Any, int]:
    """Return the value that begins there, and where the next one does."""
    at += 1
    if data[at - 1] == 0:
        return None, at
    if t.is_struct(kind):
        fields = {}
        for field in kind:
            fields[field.name], at = _read(data, at, field.type)
        return fields, at
    if t.is_list(kind) or t.is_map(kind):
        return _read_list(data, at, kind)
    if t.is_text(kind):
        end = _end(data, at)
        plain = data[at:end].replace(b"\0\xff", b"\0")
        return plain.decode() if t.is_string(kind) else plain, end + 2
    if t.is_decimal(kind):
        return Decimal(int.from_bytes(data[at : at + 16]) - _WIDE).scaleb(-kind.scale, _EXACT), at + 16
    if kind == t.BOOLEAN:
        return bool(data[at]), at + 1
    number = int.from_bytes(data[at : at + 8])
    return _from_float(number) if t.is_float(kind) else number - _HALF, at + 8


def _read_list(data: bytes, at: int, kind: pa.DataType) -> tuple[list[Any], int]:
    found: list[Any] = []
    while data[at]:
        one, at = _read(data, at + 1, kind.key_type if t.is_map(kind) else kind.value_type)
        if t.is_map(kind):
            item, at = _read(data, at, kind.item_type)
            one = (one, item)
        found.append(one)
    return found, at + 1


def _end(data: bytes, at: int) -> int:
    """Return where a text ends: at the first 00 that no FF follows."""
    while data[(at := data.index(b"\0", at)) + 1] == 0xFF:
        at += 2
    return at


def _from_float(number: int) -> float:
    bits = number & ~_HALF if number >= _HALF else ~number & _ALL
    return float(_DOUBLE.unpack(_BITS.pack(bits))[0])
