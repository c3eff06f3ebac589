"""Random types of messages and random messages of them, by the official runtime, and what columns of them must hold."""

import base64
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from joinlib.source.protobuf.columns import ProtobufRows
from joinlib.source.protobuf.program import tables
from joinlib.source.protobuf.protoc import ProtoFile, compiled_files
from joinlib.source.protobuf.schema import ProtoSchema
from joinlib.source.protobuf.types import columns_of
from joinlib.spec import ddl

_F = FieldDescriptorProto
NUMBERS = {
    _F.TYPE_INT32: (-(2**31), 2**31 - 1), _F.TYPE_SINT32: (-(2**31), 2**31 - 1), _F.TYPE_SFIXED32: (-(2**31), 2**31 - 1),
    _F.TYPE_INT64: (-(2**63), 2**63 - 1), _F.TYPE_SINT64: (-(2**63), 2**63 - 1), _F.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
    _F.TYPE_UINT32: (0, 2**32 - 1), _F.TYPE_FIXED32: (0, 2**32 - 1),
    _F.TYPE_UINT64: (0, 2**64 - 1), _F.TYPE_FIXED64: (0, 2**64 - 1),
}  # fmt: skip
SCALARS = [*NUMBERS, _F.TYPE_BOOL, _F.TYPE_FLOAT, _F.TYPE_DOUBLE, _F.TYPE_STRING, _F.TYPE_BYTES]
KEYS = [*NUMBERS, _F.TYPE_BOOL, _F.TYPE_STRING]
UNSIGNED = (_F.TYPE_UINT64, _F.TYPE_FIXED64)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def files(text: str, *imported: tuple[str, str]) -> ProtoSchema:
    """Compiled files of a text in proto3, in which package and version need not be said."""
    whole = text if "syntax" in text or "edition" in text else f'syntax = "proto3"; package s; {text}'
    return ProtoSchema(compiled_files([*(ProtoFile(*one) for one in imported), ProtoFile("", whole)]))


def shape(draw: Random) -> Descriptor:
    """A random type of messages."""
    file = FileDescriptorProto(
        name="r.proto", package="r", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    enum = file.enum_type.add(name="E")
    for name, number in (("ZERO", 0), ("MANY", 2**31 - 1), ("LESS", -3)):
        enum.value.add(name=name, number=number)
    _fill(draw, file.message_type.add(name="M"), ".r.M", 3)
    stamp = FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)
    raw = FileDescriptorSet(file=[stamp, file]).SerializeToString()
    return ProtoSchema(base64.b64encode(raw).decode()).named(None)


def _fill(draw: Random, message: DescriptorProto, name: str, depth: int) -> None:
    oneofs = 0
    numbers = draw.sample([*range(1, 40), 2047, 2048, 2**29 - 1], draw.randint(1, 7))
    for at, number in enumerate(numbers):
        how = draw.choice(["plain", "plain", "optional", "repeated", "oneof", "map"])
        field = message.field.add(name=f"f{at}", number=number, label=_F.LABEL_OPTIONAL)
        if how == "map":
            _map(draw, message, field, name, depth)
            continue
        _typed(draw, message, field, name, depth)
        if how == "repeated":
            field.label = _F.LABEL_REPEATED
            if field.type in SCALARS[:-2]:
                field.options.packed = draw.random() < 0.5
        elif how == "oneof":
            oneofs = 1
            field.oneof_index = 0
        elif how == "optional" and field.type != _F.TYPE_MESSAGE:
            field.proto3_optional = True
    if oneofs:
        message.oneof_decl.add(name="one")
    for field in message.field:
        if field.proto3_optional:
            message.oneof_decl.add(name=f"_{field.name}")
            field.oneof_index = len(message.oneof_decl) - 1


def _typed(
    draw: Random, message: DescriptorProto, field: FieldDescriptorProto, name: str, depth: int
) -> None:
    kind = draw.choice([*SCALARS, _F.TYPE_ENUM, _F.TYPE_MESSAGE, _F.TYPE_MESSAGE, _F.TYPE_MESSAGE])
    field.type = kind
    if kind == _F.TYPE_ENUM:
        field.type_name = ".r.E"
    elif kind == _F.TYPE_MESSAGE:
        if depth == 0 or draw.random() < 0.3:
            field.type_name = ".google.protobuf.Timestamp"
        else:
            inner = message.nested_type.add(name=f"In{len(message.nested_type)}")
            field.type_name = f"{name}.{inner.name}"
            _fill(draw, inner, field.type_name, depth - 1)


def _map(draw: Random, message: DescriptorProto, field: FieldDescriptorProto, name: str, depth: int) -> None:
    entry = DescriptorProto(name=f"F{field.name[1:]}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL, type=draw.choice(KEYS))
    _typed(draw, message, entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL), name, depth)
    message.nested_type.append(entry)
    field.label, field.type, field.type_name = _F.LABEL_REPEATED, _F.TYPE_MESSAGE, f"{name}.{entry.name}"


def fill(draw: Random, message: Any) -> Any:
    """Give a message random fields; return it."""
    for field in message.DESCRIPTOR.fields:
        if draw.random() < 0.35:
            continue
        into = getattr(message, field.name)
        if is_map(field):
            value = field.message_type.fields_by_number[2]
            for _ in range(draw.randint(0, 3)):
                key = scalar(draw, field.message_type.fields_by_number[1])
                if value.message_type is not None:
                    _inner(draw, into[key])
                else:
                    into[key] = scalar(draw, value)
        elif field.is_repeated:
            for _ in range(draw.randint(0, 4)):
                if field.message_type is not None:
                    _inner(draw, into.add())
                else:
                    into.append(scalar(draw, field))
        elif field.message_type is not None:
            into.SetInParent()
            _inner(draw, into)
        else:
            setattr(message, field.name, scalar(draw, field))
    return message


def _inner(draw: Random, message: Any) -> None:
    if message.DESCRIPTOR.full_name != "google.protobuf.Timestamp":
        fill(draw, message)
        return
    message.seconds = draw.choice([0, -62_135_596_800, 253_402_300_799, draw.randint(-(10**10), 10**10)])
    message.nanos = draw.choice([0, 1000 * draw.randint(0, 999_999)])


def scalar(draw: Random, field: FieldDescriptor) -> Any:
    if field.type in NUMBERS:
        low, high = NUMBERS[field.type]
        near = draw.choice([0, 1, 127, 128, draw.randint(low, high)])
        return draw.choice([low, high, min(near, high)])
    if field.type == _F.TYPE_ENUM:
        return draw.choice([0, 2**31 - 1, -3])
    if field.type == _F.TYPE_BOOL:
        return draw.random() < 0.5
    if field.type in (_F.TYPE_FLOAT, _F.TYPE_DOUBLE):
        return draw.choice([0.0, -0.0, 0.5, -1e30, math.inf, math.nan])
    text = draw.choice(["", "a", "é€😀", "x" * 200, "\0"])
    return text if field.type == _F.TYPE_STRING else draw.choice([text.encode(), b"\xff\x00"])


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def row(message: Any) -> dict[str, Any]:
    """What columns must hold of a message."""
    return {field.name: _whole(message, field) for field in message.DESCRIPTOR.fields}


def _whole(message: Any, field: FieldDescriptor) -> Any:
    found = getattr(message, field.name)
    if is_map(field):
        key, value = (field.message_type.fields_by_number[n] for n in (1, 2))
        return sorted(((cell(key, k), cell(value, found[k])) for k in found), key=repr)
    if field.is_repeated:
        return [cell(field, one) for one in found]
    return None if field.has_presence and not message.HasField(field.name) else cell(field, found)


def cell(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        return row(value)
    if field.type == _F.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return Decimal(value) if field.type in UNSIGNED else value


def told(table: pa.Table) -> str:
    """Rows as a text that can be compared: maps have no order, and NaN is itself."""
    table.validate(full=True)
    return repr(
        [{n: _sorted(table.schema.field(n).type, v) for n, v in one.items()} for one in table.to_pylist()]
    )


def _sorted(type: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_map(type):
        return sorted(((_sorted(type.key_type, k), _sorted(type.item_type, v)) for k, v in value), key=repr)
    if pa.types.is_list(type):
        return [_sorted(type.value_type, v) for v in value]
    if pa.types.is_struct(type):
        return {
            f.name: _sorted(f.type, value[f.name]) for f in (type.field(i) for i in range(type.num_fields))
        }
    if pa.types.is_timestamp(type):
        return value.astimezone(UTC)
    return value


def reader(
    writer: Descriptor, columns: str | Sequence[str] | None = None, own: Descriptor | None = None
) -> ProtobufRows:
    """Reads messages of a type; `own` is the reader's, `columns` are declared, or names of those that it has."""
    own = own or writer
    want = ddl.parse(columns) if isinstance(columns, str) else columns_of(own)
    if columns is not None and not isinstance(columns, str):
        want = pa.schema([want.field(name) for name in columns])
    return ProtobufRows(tables(writer, want, own), want.names)
