"""Which type a column has here for each type of Avro, and how a default is written as in a message.

int, long            INT, BIGINT; times of day stay numbers       timestamp-*         TIMESTAMP
float, double        FLOAT, DOUBLE                                local-timestamp-*   TIMESTAMP_NTZ
bytes, fixed         BINARY                                       date                DATE
string, enum, uuid   STRING                                       decimal             DECIMAL
record, array, map   STRUCT, ARRAY, MAP                           null or a type      that type
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from joinlib.errors import InputError
from joinlib.source.avro.schema import NONE, AvroType
from joinlib.spec.ddl import MAX_PRECISION, SIMPLE

_PLAIN = {
    "boolean": SIMPLE["BOOLEAN"],
    "int": SIMPLE["INT"],
    "long": SIMPLE["BIGINT"],
    "float": SIMPLE["FLOAT"],
    "double": SIMPLE["DOUBLE"],
    "bytes": SIMPLE["BINARY"],
    "fixed": SIMPLE["BINARY"],
    "string": SIMPLE["STRING"],
    "enum": SIMPLE["STRING"],
}
_FIX = "declare the columns in the input's schema, without it or with a type that it can be read as"


def columns_of(type: AvroType) -> pa.Schema:
    """Return the columns of a record.

    Raises:
        InputError: It is no record, or a field of it has no column type; the message names the field.
    """
    if type.kind != "record":
        raise InputError(f"is {type.words}; messages must be records")
    return pa.schema([pa.field(f.name, _type(f.type, f.name), f.type.nullable) for f in type.fields])


def _type(type: AvroType, place: str) -> pa.DataType:
    if type.kind == "union":
        return _type(_only(type, place), place)
    if type.kind == "record" and type.fields:
        inner = [(f.name, _type(f.type, f"{place}.{f.name}"), f.type.nullable) for f in type.fields]
        return pa.struct([pa.field(*f) for f in inner])
    if type.kind == "array" and type.of is not None:
        return pa.list_(pa.field("element", _type(type.of, place)))
    if type.kind == "map" and type.of is not None:
        return pa.map_(pa.string(), pa.field("value", _type(type.of, place)))
    found = _logical(type) if type.logical else _PLAIN.get(type.kind)
    if found is None:
        raise InputError(f"field '{place}' is {type.words}, for which there is no column type; {_FIX}")
    return found


def _logical(type: AvroType) -> pa.DataType | None:
    if type.logical == "decimal":
        return pa.decimal128(type.precision, type.scale) if type.precision <= MAX_PRECISION else None
    if "timestamp" in type.logical:
        return SIMPLE["TIMESTAMP_NTZ" if type.logical.startswith("local") else "TIMESTAMP"]
    return {"date": SIMPLE["DATE"], "uuid": SIMPLE["STRING"]}.get(type.logical, _PLAIN[type.kind])


def _only(type: AvroType, place: str) -> AvroType:
    """Return the one type of a union that is not null."""
    some = [b for b in type.branches if b.kind != "null"]
    if len(some) != 1:
        raise InputError(f"field '{place}' is {type.words}, for which there is no column type; {_FIX}")
    return some[0]


def encoded(type: AvroType, value: Any) -> bytes:
    """Return a default, which is JSON, as it would stand in a message.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, struct.error: It is not of the type.
    """
    return _ENCODERS[type.kind](type, value)


def _null(type: AvroType, value: Any) -> bytes:
    if value is not None:
        raise ValueError
    return b""


def _integer(type: AvroType, value: Any) -> bytes:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return number(value)


def _real(type: AvroType, value: Any) -> bytes:
    if isinstance(value, bool):
        raise TypeError
    return struct.pack("<f" if type.kind == "float" else "<d", float(value))


def _boolean(type: AvroType, value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError
    return bytes([value])


def _fixed(type: AvroType, value: Any) -> bytes:
    raw = value.encode("latin-1")
    if len(raw) != type.size:
        raise ValueError
    return raw


def _record(type: AvroType, value: Any) -> bytes:
    return b"".join(
        encoded(f.type, value[f.name] if f.name in value else _given(f.default)) for f in type.fields
    )


def _array(type: AvroType, value: Any) -> bytes:
    assert type.of is not None
    return _items([encoded(type.of, v) for v in value])


def _map(type: AvroType, value: Any) -> bytes:
    assert type.of is not None
    return _items([_sized(k.encode()) + encoded(type.of, v) for k, v in value.items()])


def _given(default: Any) -> Any:
    if default is NONE:
        raise ValueError("default")
    return default


def _union(type: AvroType, value: Any) -> bytes:
    """Return a value of the first branch that it fits."""
    for at, branch in enumerate(type.branches):
        try:
            return number(at) + encoded(branch, value)
        except (ValueError, TypeError, KeyError, AttributeError, struct.error):
            continue
    raise ValueError("union")


def _items(items: Iterable[bytes]) -> bytes:
    found = list(items)
    return (number(len(found)) + b"".join(found) if found else b"") + b"\0"


def _sized(raw: bytes) -> bytes:
    return number(len(raw)) + raw


def number(value: int) -> bytes:
    """Return an integer as Avro writes it: zigzag, seven bits in a byte."""
    rest = (value << 1) ^ (value >> 63)
    if not 0 <= rest < 1 << 64:
        raise ValueError("long")
    found = bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*found, rest])


_ENCODERS: dict[str, Callable[[AvroType, Any], bytes]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _real,
    "double": _real,
    "bytes": lambda type, value: _sized(value.encode("latin-1")),
    "string": lambda type, value: _sized(value.encode()),
    "fixed": _fixed,
    "enum": lambda type, value: number(type.symbols.index(value)),
    "record": _record,
    "array": _array,
    "map": _map,
    "union": _union,
}
