"""Which schema do result rows have in Protobuf? A message with a field for each of the result's columns.

INT and shorter   int32            BOOLEAN, STRING  bool, string       ARRAY    repeated
BIGINT            int64            BINARY           bytes              STRUCT   a message within the message
FLOAT, DOUBLE     float, double    TIMESTAMP        google.protobuf.Timestamp

Every field but a repeated one is `optional`, so that NULL is told from zero. Readers know a field by its number. Law: a
column keeps the number that it has in the schema before, and the number of a column that went is never given again.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

import pyarrow as pa
from pyarrow import types as t

from joinlib.errors import SpecError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT_BITS = 32
_LAST = 2**29 - 1  # the largest number that a field may have
_OWN = range(19_000, 20_000)  # numbers that Protobuf keeps for itself
_TIMESTAMP = "google.protobuf.Timestamp"
_IMPORT = 'import "google/protobuf/timestamp.proto";'


class RowField(NamedTuple):
    """A field. `inner`: the type of the message in it, if it is one."""

    name: str
    number: int
    inner: "RowMessage | None" = None


class RowMessage(NamedTuple):
    """A type of messages: the one of a result, or what a schema before it has of that.

    name      its full name, and within another message its own
    fields    in the order of the columns
    reserved  the ranges of numbers that no field may have, from the first to the last one of each
    names     the names that no field may have, of which a column takes its own back
    """

    name: str
    fields: tuple[RowField, ...] = ()
    reserved: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()


def message_of(columns: pa.Schema, known: RowMessage) -> RowMessage:
    """Return the type of the messages of rows with these columns.

    Args:
        columns: Those of the result.
        known: The type before it, whose numbers are kept; a name alone if there is none.

    Raises:
        SpecError: A column has a name or a type that Protobuf does not have, or no number is left for it.
    """
    return _message([*columns], known, "")


def schema_text(columns: pa.Schema, message: RowMessage) -> str:
    """Return the schema of messages of a type that `message_of` has made of the same columns, as a .proto file."""
    package, _, name = message.name.rpartition(".")
    lines = ['syntax = "proto3";', *([f"package {package};"] if package else [])]
    body = [*_lines([*columns], message._replace(name=name), "")]
    if any(f" {_TIMESTAMP} " in line for line in body):
        lines.append(_IMPORT)
    return "\n".join([*lines, "", *body, ""])


def inner_columns(kind: pa.DataType) -> list[pa.Field] | None:
    """Return the columns of the message that a value, or an item of a list, is; None if it is none."""
    item = kind.value_type if t.is_list(kind) else kind
    return [*item] if t.is_struct(item) else None


# --- types of messages -------------------------------------------------------------------------------------------------


def _message(columns: list[pa.Field], known: RowMessage, place: str) -> RowMessage:
    _check_names([c.name for c in columns], place)
    before = {f.name: f for f in known.fields}
    free = _free(known)
    taken = {c.name for c in columns}
    fields = []
    for column in columns:
        where, kept = f"{place}{column.name}", before.get(column.name)
        _word(column.type, where)
        number = kept.number if kept is not None else _number(free, where)
        inner = _inner(column, kept, taken, where)
        taken |= {inner.name} if inner is not None else set()
        fields.append(RowField(column.name, number, inner))
    return RowMessage(known.name, tuple(fields), _reserved(known, fields), _names(known, fields))


def _inner(column: pa.Field, kept: RowField | None, taken: set[str], where: str) -> RowMessage | None:
    """Return the type of the message in a field: called as before, else by what no other is called."""
    columns = inner_columns(column.type)
    if columns is None:
        return None
    known = kept.inner if kept is not None and kept.inner is not None else RowMessage(f"{column.name}_type")
    name = next(n for n in (f"{known.name}{'_' * more}" for more in count()) if n not in taken)
    return _message(columns, known._replace(name=name), f"{where}.")


def _free(known: RowMessage) -> Iterator[int]:
    """Yield the numbers above all that are, or were, those of fields."""
    most = max([0, *(f.number for f in known.fields), *(last for _, last in known.reserved)])
    return (number for number in range(most + 1, _LAST + 1) if number not in _OWN)


def _number(free: Iterator[int], where: str) -> int:
    found = next(free, None)
    if found is None:
        raise SpecError(
            f"output.kafka.registry: the subject's schema leaves no number above its own for column {where!r}; add the"
            " field to that schema, or name another subject"
        )
    return found


def _reserved(known: RowMessage, fields: list[RowField]) -> tuple[tuple[int, int], ...]:
    """Return the ranges that were reserved, and the numbers of fields that went; neighbours are one range."""
    kept = {f.number for f in fields}
    gone = [(f.number, f.number) for f in known.fields if f.number not in kept]
    ranges: list[tuple[int, int]] = []
    for first, last in sorted([*known.reserved, *gone]):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return tuple(ranges)


def _names(known: RowMessage, fields: list[RowField]) -> tuple[str, ...]:
    """Return the names that were reserved, and those of fields that went."""
    now = {f.name for f in fields}
    return tuple(sorted({*known.names, *(f.name for f in known.fields)} - now))


def _check_names(names: list[str], place: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name):
            raise SpecError(
                f"output.kafka.format: protobuf has no name like that of column {place + name!r}; give it one of letters,"
                " digits and _ (AS)"
            )
        other = seen.setdefault(_as_json(name), name)
        if other != name:
            raise SpecError(
                f"output.kafka.format: columns {place + other!r} and {place + name!r} would have the same name in the JSON"
                " of Protobuf; rename one (AS)"
            )


def _as_json(name: str) -> str:
    """Return what a field is called in JSON, where the letter behind a _ is a capital one."""
    return re.sub(r"_+(.?)", lambda found: found[1].upper(), name)


# --- the text ----------------------------------------------------------------------------------------------------------


def _lines(columns: list[pa.Field], message: RowMessage, margin: str) -> Iterator[str]:
    inside = f"{margin}  "
    yield f"{margin}message {message.name} {{"
    if message.reserved:
        yield f"{inside}reserved {', '.join(map(_range, message.reserved))};"
    if message.names:
        yield f"{inside}reserved {', '.join(map(json.dumps, message.names))};"
    for column, field in zip(columns, message.fields, strict=True):
        columns_in = inner_columns(column.type)
        if field.inner is not None and columns_in is not None:
            yield from _lines(columns_in, field.inner, inside)
        word = field.inner.name if field.inner is not None else _word(column.type, column.name)
        label = "repeated" if t.is_list(column.type) else "optional"
        yield f"{inside}{label} {word} {field.name} = {field.number};"
    yield f"{margin}}}"


def _range(bounds: tuple[int, int]) -> str:
    first, last = bounds
    return str(first) if first == last else f"{first} to {'max' if last == _LAST else last}"


def _word(kind: pa.DataType, where: str) -> str:
    """Return what the type of a value, or of an item of a list, is called; nothing for a message."""
    item = kind.value_type if t.is_list(kind) else kind
    found = next((word for is_one, word in _SIMPLE if is_one(item)), None)
    if found is None:
        raise _impossible(where, kind)
    return found


_SIMPLE: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (t.is_struct, ""),
    (lambda kind: t.is_timestamp(kind) and kind.tz is not None, _TIMESTAMP),
    (lambda kind: t.is_signed_integer(kind) and kind.bit_width <= _INT_BITS, "int32"),
    (t.is_int64, "int64"),
    (t.is_boolean, "bool"),
    (t.is_float32, "float"),
    (t.is_float64, "double"),
    (t.is_string, "string"),
    (t.is_null, "string"),
    (t.is_binary, "bytes"),
)


def _impossible(where: str, kind: pa.DataType) -> SpecError:
    item = kind.value_type if t.is_list(kind) else kind
    to = "TIMESTAMP" if t.is_timestamp(item) else "STRING"
    if t.is_list(kind) and not t.is_nested(item):
        to = f"ARRAY<{to}>"
    return SpecError(
        f"output.kafka.format: protobuf has no type for column {where!r}, which is {kind}; leave it out, or CAST it, such as"
        f" CAST({where} AS {to})"
    )
