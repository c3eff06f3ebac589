"""Encodes rows in Protobuf, a whole column at a time: a column becomes the bytes of its fields, a row those of its columns.

    column ─► bytes of each value ─► [NULL: nothing | not NULL: tag, bytes] ─┐
    column ─► …                                                             ─┴► head + all of a row, joined

What is not NULL is written even if it is zero, and a list as its items: one after the other, or packed if they are
numbers. Law: read by the schema of `spec.protobuf`, the bytes are the row, but that a list which is NULL is empty.
Cost: that of Avro.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from joinlib.errors import SpecError
from joinlib.sink import parts
from joinlib.spec.protobuf import RowField, RowMessage

_NOTHING = pa.scalar(b"", pa.binary())
_VARINT, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5  # how values lie: the last bits of a tag
_SECOND, _MICRO = 1_000_000, 1_000  # microseconds, and nanoseconds of one
_SECONDS, _NANOS = 1, 2  # the fields of google.protobuf.Timestamp


def rows(batch: pa.RecordBatch, head: bytes, message: RowMessage) -> pa.Array:
    """Return each row, behind `head`, as bytes (pa.BinaryArray). `message`: the type of the messages.

    Raises:
        SpecError: A list has an item that is NULL, which Protobuf cannot say.
    """
    return _message(parts.repeated(head, batch.num_rows), batch.columns, message, "")


def _message(front: pa.Array, columns: Iterable[pa.Array], message: RowMessage, place: str) -> pa.Array:
    """Encode the fields of messages, behind what stands in front of each."""
    fields = zip(columns, message.fields, strict=True)
    return parts.joined(front, *(_field(column, field, f"{place}{field.name}") for column, field in fields))


def _field(column: pa.Array, field: RowField, where: str) -> pa.Array:
    """Encode a field: its tag and the value; nothing where that is NULL."""
    if t.is_null(column.type):
        return pa.repeat(_NOTHING, len(column))
    if t.is_list(column.type):
        return _list(column, field, where)
    return pc.if_else(column.is_valid(), _tagged(column, field, where), _NOTHING)


def _tagged(column: pa.Array, field: RowField, where: str) -> pa.Array:
    tag = pa.scalar(_tag(field.number, _wire(column.type)), pa.binary())
    return parts.joined(tag, _values(column, field, where))


def _list(column: pa.Array, field: RowField, where: str) -> pa.Array:
    """Encode lists; one that is NULL is as one without items."""
    items = column.flatten()  # of the lists that are not NULL, and of no others
    if items.null_count:
        raise SpecError(
            f"output.kafka.format: protobuf has no NULL within an ARRAY, and column {where!r} has one; leave such items out"
            f" (filter({where}, x -> x IS NOT NULL))"
        )
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    if _wire(items.type) == _LENGTH:
        return parts.spans(_tagged(items, field, where), bounds)
    packed = _prefixed(parts.spans(_values(items, field, where), bounds))
    tag = pa.scalar(_tag(field.number, _LENGTH), pa.binary())
    return pc.if_else(pa.array(counts > 0), parts.joined(tag, packed), _NOTHING)


def _values(column: pa.Array, field: RowField, where: str) -> pa.Array:
    """Encode the values; what stands in the place of a NULL is anything."""
    kind = column.type
    if field.inner is not None:
        front = parts.repeated(b"", len(column))
        return _prefixed(_message(front, column.flatten(), field.inner, f"{where}."))
    if t.is_timestamp(kind):
        return _prefixed(_moments(parts.integers(column)))
    if t.is_string(kind) or t.is_binary(kind):
        return _prefixed(parts.texts(column))
    if t.is_boolean(kind):
        return parts.booleans(column)
    if t.is_floating(kind):
        return parts.floats(column)
    return _numbers(parts.integers(column))


def _moments(micros: npt.NDArray[np.int64]) -> pa.Array:
    """Encode google.protobuf.Timestamp: seconds since 1970, and nanoseconds that count forward before it, too."""
    seconds = micros // _SECOND
    nanos = (micros - seconds * _SECOND) * _MICRO
    return parts.joined(_counted(_SECONDS, seconds), _counted(_NANOS, nanos))


def _counted(number: int, values: npt.NDArray[np.int64]) -> pa.Array:
    """Encode a field that is left out where it is zero."""
    tag = pa.scalar(_tag(number, _VARINT), pa.binary())
    return pc.if_else(pa.array(values != 0), parts.joined(tag, _numbers(values)), _NOTHING)


def _numbers(values: npt.NDArray[np.int64]) -> pa.Array:
    """Encode integers; negative ones have ten bytes."""
    return parts.varints(values.view(np.uint64))


def _prefixed(values: pa.Array) -> pa.Array:
    """Put the length of each value in front of it."""
    return parts.joined(_numbers(parts.lengths(values)), values)


def _wire(kind: pa.DataType) -> int:
    if t.is_floating(kind):
        return _EIGHT if kind.bit_width == 64 else _FOUR
    return _VARINT if t.is_integer(kind) or t.is_boolean(kind) else _LENGTH


def _tag(number: int, wire: int) -> bytes:
    return bytes(parts.varints(np.array([number << 3 | wire], np.uint64))[0].as_py())
