"""Which type a column has here for each type of Protobuf.

int32, sint32, sfixed32   INT               double, float          DOUBLE, FLOAT
int64, sint64, sfixed64   BIGINT            bool                   BOOLEAN
uint32, fixed32           BIGINT            string, enum           STRING
uint64, fixed64           DECIMAL(20, 0)    bytes                  BINARY
message                   STRUCT            repeated, map          ARRAY, MAP
google.protobuf.Timestamp                                          TIMESTAMP

What may be unset (a message, what is `optional` or in a `oneof`) may be NULL; other fields have their zero value.
"""

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from joinlib.errors import InputError
from joinlib.spec.ddl import SIMPLE

UNSIGNED = pa.decimal128(20, 0)
_PLAIN = {
    FieldDescriptor.TYPE_INT32: SIMPLE["INT"],
    FieldDescriptor.TYPE_SINT32: SIMPLE["INT"],
    FieldDescriptor.TYPE_SFIXED32: SIMPLE["INT"],
    FieldDescriptor.TYPE_UINT32: SIMPLE["BIGINT"],
    FieldDescriptor.TYPE_FIXED32: SIMPLE["BIGINT"],
    FieldDescriptor.TYPE_INT64: SIMPLE["BIGINT"],
    FieldDescriptor.TYPE_SINT64: SIMPLE["BIGINT"],
    FieldDescriptor.TYPE_SFIXED64: SIMPLE["BIGINT"],
    FieldDescriptor.TYPE_UINT64: UNSIGNED,
    FieldDescriptor.TYPE_FIXED64: UNSIGNED,
    FieldDescriptor.TYPE_FLOAT: SIMPLE["FLOAT"],
    FieldDescriptor.TYPE_DOUBLE: SIMPLE["DOUBLE"],
    FieldDescriptor.TYPE_BOOL: SIMPLE["BOOLEAN"],
    FieldDescriptor.TYPE_STRING: SIMPLE["STRING"],
    FieldDescriptor.TYPE_ENUM: SIMPLE["STRING"],
    FieldDescriptor.TYPE_BYTES: SIMPLE["BINARY"],
}
_WORDS = {
    getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name
    for name in (
        "int32", "sint32", "sfixed32", "uint32", "fixed32", "int64", "sint64", "sfixed64", "uint64", "fixed64",
        "float", "double", "bool", "string", "bytes",
    )
}  # fmt: skip
_MOST_COLUMNS = 100_000
_FIX = "declare the columns in the input's schema, without it"


def columns_of(message: Descriptor) -> pa.Schema:
    """Return the columns of a message's type.

    Raises:
        InputError: A field has no column type, and the text names it; or there are too many.
    """
    try:
        if _count(message, {}) <= _MOST_COLUMNS:
            return pa.schema(_fields(message, "", (message,)))
    except RecursionError:
        pass
    raise InputError(
        f"message {message.full_name} has more than {_MOST_COLUMNS} fields where all messages in it are written out,"
        f" or is too deep; {_FIX}"
    )


def words(field: FieldDescriptor) -> str:
    """Return a field's type in a few words, for errors."""
    if is_map(field):
        return f"map<{', '.join(words(part) for part in _parts(field))}>"
    name = _WORDS.get(field.type, "")
    if field.enum_type is not None:
        name = f"enum {field.enum_type.full_name}"
    elif field.message_type is not None:
        name = f"{'message' if is_message(field) else 'group'} {field.message_type.full_name}"
    return f"repeated {name}" if field.is_repeated else name


def plain(field: FieldDescriptor) -> pa.DataType:
    """Return the column type of a field that is no message."""
    return _PLAIN[field.type]


def is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def is_message(field: FieldDescriptor) -> bool:
    return bool(field.type == FieldDescriptor.TYPE_MESSAGE)


def is_timestamp(field: FieldDescriptor) -> bool:
    name = field.message_type.full_name if field.message_type is not None else ""
    return is_message(field) and name == "google.protobuf.Timestamp"


def _parts(field: FieldDescriptor) -> list[FieldDescriptor]:
    """Return key and value of a map."""
    assert field.message_type is not None
    return [field.message_type.fields_by_number[number] for number in (1, 2)]


def _count(message: Descriptor, known: dict[Descriptor, int]) -> int:
    """Return how many fields a message has, with those of its messages wherever they stand."""
    if message not in known:
        known[message] = 0  # one that holds itself is refused where it does
        inner = [f.message_type for f in message.fields if f.message_type is not None]
        known[message] = len(message.fields) + sum(_count(m, known) for m in inner)
    return known[message]


def _fields(message: Descriptor, place: str, around: tuple[Descriptor, ...]) -> list[pa.Field]:
    return [
        pa.field(f.name, _whole(f, f"{place}{f.name}", around), bool(f.has_presence and not f.is_repeated))
        for f in message.fields
    ]


def _whole(field: FieldDescriptor, place: str, around: tuple[Descriptor, ...]) -> pa.DataType:
    """Return the type of a field that may be repeated."""
    if is_map(field):
        key, value = (_one(part, place, around) for part in _parts(field))
        return pa.map_(key, pa.field("value", value))
    one = _one(field, place, around)
    return pa.list_(pa.field("element", one)) if field.is_repeated else one


def _one(field: FieldDescriptor, place: str, around: tuple[Descriptor, ...]) -> pa.DataType:
    inner = field.message_type
    if inner is None:
        return _PLAIN[field.type]
    if is_timestamp(field):
        return SIMPLE["TIMESTAMP"]
    if inner in around:
        raise InputError(f"field '{place}' holds itself ({inner.full_name}), which has no column; {_FIX}")
    if not is_message(field) or not inner.fields:
        raise InputError(f"field '{place}' is {words(field)}, for which there is no column type; {_FIX}")
    return pa.struct(_fields(inner, f"{place}.", (*around, inner)))
