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
from collections.abc import Callable
from decimal import Context, Decimal
from functools import cache, partial
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
    return b"\0" if value is None else b"\1" + _writer(kind)(value)


def unpacked(data: bytes, kind: pa.DataType) -> Any:
    return _read(data, 0, _reader(kind))[0]


def unpacked_list(values: list[bytes | None], kind: pa.DataType) -> list[Any]:
    return [None if value is None else unpacked(value, kind) for value in values]


@cache
def _writer(kind: pa.DataType) -> Callable[[Any], bytes]:
    """Return what packs a value of this type that is not NULL."""
    if t.is_struct(kind):
        fields = [(field.name, _writer(field.type)) for field in kind]
        return lambda value: b"".join(_written(value[name], write) for name, write in fields)
    if t.is_list(kind):
        write = _writer(kind.value_type)
        return lambda value: b"".join(b"\1" + _written(one, write) for one in value) + b"\0"
    if t.is_map(kind):
        key, item = _writer(kind.key_type), _writer(kind.item_type)
        return lambda value: b"".join(b"\1" + _written(k, key) + _written(v, item) for k, v in value) + b"\0"
    if t.is_text(kind):
        return _text
    if t.is_decimal(kind):
        scale = kind.scale
        return lambda value: (int(value.scaleb(scale, _EXACT)) + _WIDE).to_bytes(16)
    if kind == t.BOOLEAN:
        return lambda value: bytes([value])
    return _float if t.is_float(kind) else lambda value: (value + _HALF).to_bytes(8)


def _written(value: Any, write: Callable[[Any], bytes]) -> bytes:
    return b"\0" if value is None else b"\1" + write(value)


def _text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return data.replace(b"\0", b"\0\xff") + b"\0\0"


def _float(value: float) -> bytes:
    (bits,) = _BITS.unpack(_DOUBLE.pack(math.nan if math.isnan(value) else value + 0.0))
    return _BITS.pack(~bits & _ALL if bits >= _HALF else bits | _HALF)


_Reader = Callable[[bytes, int], tuple[Any, int]]  # of what begins there: the value, and where it ends


def _read(data: bytes, at: int, read: _Reader) -> tuple[Any, int]:
    return (None, at + 1) if data[at] == 0 else read(data, at + 1)


@cache
def _reader(kind: pa.DataType) -> _Reader:
    """Return what unpacks a value of this type that is not NULL."""
    if t.is_struct(kind):
        return partial(_read_struct, fields=[(field.name, _reader(field.type)) for field in kind])
    if t.is_list(kind):
        return partial(_read_list, read=partial(_read, read=_reader(kind.value_type)))
    if t.is_map(kind):
        return partial(
            _read_list, read=partial(_read_pair, key=_reader(kind.key_type), item=_reader(kind.item_type))
        )
    if t.is_text(kind):
        return partial(_read_text, text=t.is_string(kind))
    if t.is_decimal(kind):
        scale = kind.scale
        return lambda data, at: (
            Decimal(int.from_bytes(data[at : at + 16]) - _WIDE).scaleb(-scale, _EXACT),
            at + 16,
        )
    if kind == t.BOOLEAN:
        return lambda data, at: (bool(data[at]), at + 1)
    return _read_float if t.is_float(kind) else _read_number


def _read_struct(data: bytes, at: int, fields: list[tuple[str, _Reader]]) -> tuple[dict[str, Any], int]:
    found = {}
    for name, read in fields:
        found[name], at = _read(data, at, read)
    return found, at


def _read_list(data: bytes, at: int, read: _Reader) -> tuple[list[Any], int]:
    found = []
    while data[at]:
        one, at = read(data, at + 1)
        found.append(one)
    return found, at + 1


def _read_pair(data: bytes, at: int, key: _Reader, item: _Reader) -> tuple[tuple[Any, Any], int]:
    one, at = _read(data, at, key)
    other, at = _read(data, at, item)
    return (one, other), at


def _read_text(data: bytes, at: int, text: bool) -> tuple[str | bytes, int]:
    """The text ends at the first 00 that no FF follows."""
    end = data.index(b"\0", at)
    while data[end + 1] == 0xFF:
        end = data.index(b"\0", end + 2)
    plain = data[at:end].replace(b"\0\xff", b"\0")
    return plain.decode() if text else plain, end + 2


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    return _BITS.unpack_from(data, at)[0] - _HALF, at + 8


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    (number,) = _BITS.unpack_from(data, at)
    bits = number & ~_HALF if number >= _HALF else ~number & _ALL
    return _DOUBLE.unpack(_BITS.pack(bits))[0], at + 8
