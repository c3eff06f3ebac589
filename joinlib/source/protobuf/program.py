"""Compiles how messages of one writer's type become the columns that are declared.

A column is the field of that name in the reader's type, and of that field's number in the writer's, so a field that
was renamed is the same one; a column that the reader's type lacks is the writer's field of that name. How a value
is written, and what the numbers of an enum are called, is what the writer's type says. A field that the writer lacks
has its zero value, or is NULL if it may be unset. What is not wanted is skipped.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.source.cells.slots import Column, Flat, Many, Struct
from joinlib.source.fit import fits
from joinlib.source.protobuf import kernel as k
from joinlib.source.protobuf import types

_F = FieldDescriptor
_MOST_FIELDS = 100_000
_WIDE = "declare a type that holds all its values, or leave the column out"
_OPS = {
    _F.TYPE_INT32: k.INT32, _F.TYPE_ENUM: k.INT32, _F.TYPE_UINT32: k.UINT32, _F.TYPE_SINT32: k.SINT32,
    _F.TYPE_INT64: k.INT64, _F.TYPE_UINT64: k.INT64, _F.TYPE_SINT64: k.SINT64, _F.TYPE_BOOL: k.BOOL,
    _F.TYPE_FIXED32: k.FIXED32, _F.TYPE_SFIXED32: k.SFIXED32, _F.TYPE_FIXED64: k.FIXED64,
    _F.TYPE_SFIXED64: k.FIXED64, _F.TYPE_FLOAT: k.FLOAT, _F.TYPE_DOUBLE: k.DOUBLE,
    _F.TYPE_BYTES: k.BYTES, _F.TYPE_STRING: k.TEXT, _F.TYPE_MESSAGE: k.MESSAGE, _F.TYPE_GROUP: k.SKIP,
}  # fmt: skip
_WIRES = dict.fromkeys(range(k.INT32, k.FIXED32), 0) | {
    k.FIXED32: 5, k.SFIXED32: 5, k.FLOAT: 5, k.FIXED64: 1, k.DOUBLE: 1, k.BYTES: 2, k.TEXT: 2, k.MESSAGE: 2, k.SKIP: 3,
}  # fmt: skip
_UNSIGNED = (_F.TYPE_UINT64, _F.TYPE_FIXED64)


@dataclass
class Symbols(Flat):
    """A column of an enum's values, written as numbers and read as names."""

    of: EnumDescriptor | None = None


@dataclass
class Unsigned(Flat):
    """A column of numbers whose 64 bits have no sign."""


@dataclass
class Timestamps(Flat):
    """A column of google.protobuf.Timestamp: in its slot nothing, in the next seconds, in the third nanoseconds."""


class Begin(NamedTuple):
    """What a slot of a new message begins with: the first item of a level (or -1: zero), and whether it is there."""

    slot: int
    level: int
    items: int = -1
    there: int = 1


class FieldTables(NamedTuple):
    """What the kernel needs, and how columns are made of what it writes."""

    entries: I64
    nodes: I64
    begins: I64
    slots: I64  # the level of each slot
    columns: tuple[Column, ...]
    levels: int
    writer: Descriptor


class _Unfit(Exception):
    """A field cannot be read as a column's type."""


def tables(writer: Descriptor, want: pa.Schema, reader: Descriptor) -> FieldTables:
    """Compile how a writer's messages become columns.

    Raises:
        InputError: A column cannot be read from such messages; the text names it.
    """
    if writer.full_name != reader.full_name:
        raise InputError(
            f"its message is a {writer.full_name}, but the columns are those of a {reader.full_name}; "
            "correct registry.message, or keep these messages in a topic of their own"
        )
    made = _Tables()
    node = made.node()
    columns, begins = made.message(node, writer, list(want), reader, 0, "")
    made.begins[node] = begins
    return made.done(columns, writer)


@dataclass(frozen=True)
class _Origin:
    """What a column is read from.

    of       the writer's field; the reader's, if the writer has none
    comes    whether the writer has it: what does not come is as if unset
    known    the reader's type of the message in it
    """

    of: FieldDescriptor
    comes: bool
    known: Descriptor | None

    @property
    def may_miss(self) -> bool:
        return bool(self.of.has_presence and not self.of.is_repeated)

    @property
    def inner(self) -> Descriptor:
        """The type of the message in it."""
        assert self.of.message_type is not None
        return self.of.message_type

    def part(self, number: int) -> "_Origin":
        """Return a field of the message in it."""
        known = self.known.fields_by_number.get(number) if self.known is not None else None
        return _Origin(
            self.inner.fields_by_number[number], self.comes, known.message_type if known is not None else None
        )


@dataclass
class _Tables:
    entries: list[list[list[int]]] = field(default_factory=list)  # of each node
    begins: list[list[Begin]] = field(default_factory=list)
    pairs: set[int] = field(default_factory=set)  # nodes that are those of a map
    slots: list[int] = field(default_factory=list)
    levels: int = 1
    depth: int = 0
    count: int = 0

    # --- tables ----------------------------------------------------------------------------------------------------

    def node(self) -> int:
        """Add a type of message at its place."""
        self.entries.append([])
        self.begins.append([])
        return len(self.entries) - 1

    def slot(self, level: int, count: int = 1) -> int:
        self.slots += [level] * count
        return len(self.slots) - count

    def entry(
        self,
        node: int,
        field: FieldDescriptor,
        op: int,
        slot: int,
        level: int,
        items: bool = False,
        of: int = 0,
    ) -> list[int]:
        """Add where a field goes: `items` if to a list, `of`: the node of the message in it."""
        self.count += 1
        if self.count > _MOST_FIELDS:
            raise InputError(f"has more than {_MOST_FIELDS} fields; leave out columns that are not needed")
        self.entries[node].append([field.number, op, _WIRES[op], slot, level, int(items), of, -1, 0])
        return self.entries[node][-1]

    def done(self, columns: list[Column], writer: Descriptor) -> FieldTables:
        entries: list[list[int]] = []
        begins: list[Begin] = []
        ends = [(0, 0)]
        for fields, first in zip(self.entries, self.begins):
            entries += sorted(fields)
            begins += first
            ends.append((len(entries), len(begins)))
        nodes = [[a, b, x, y, int(n in self.pairs)] for n, ((a, x), (b, y)) in enumerate(pairwise(ends))]
        return FieldTables(
            np.array(entries or [[0] * (k.OWN + 1)], np.int64),  # the kernel looks at the first
            np.array(nodes, np.int64),
            np.array(begins, np.int64).reshape(-1, len(Begin._fields)),
            np.array(self.slots, np.int64),
            tuple(columns),
            self.levels,
            writer,
        )

    # --- columns ---------------------------------------------------------------------------------------------------

    def message(
        self,
        node: int,
        writer: Descriptor,
        want: list[pa.Field],
        reader: Descriptor | None,
        level: int,
        place: str,
    ) -> tuple[list[Column], list[Begin]]:
        """Compile a message's fields; return the columns, and what a new message begins with."""
        self.depth += 1
        if self.depth >= k.DEPTH:
            raise InputError(f"has more than {k.DEPTH} messages within messages; declare fewer")
        columns, begins, oneofs = [], [], _Oneofs(self, node, level)
        for wanted in want:
            source = _source(writer, reader, wanted.name)
            column, begin = self._wanted(node, source, wanted, level, place)
            columns.append(column)
            begins += begin
            if source is not None and source.comes:
                oneofs.add(source.of)
        self.depth -= 1
        return columns, begins + oneofs.complete()

    def _wanted(
        self, node: int, source: _Origin | None, wanted: pa.Field, level: int, place: str
    ) -> tuple[Column, list[Begin]]:
        at = f"{place}{wanted.name}"
        if source is None:
            if not wanted.nullable:
                raise InputError(f"it has no field '{at}', which is declared NOT NULL; declare it without")
            slot = self.slot(level, 2)
            return Flat(slot, level, wanted.type, None, nullable=True), [Begin(slot, level, there=0)]
        if place and source.may_miss and not wanted.nullable:
            raise InputError(f"'{at}' may be unset, but is declared NOT NULL; declare it without")
        try:
            return self._column(node, source, wanted.type, level, f"{at}.")
        except _Unfit:
            said = f"field '{at}' is {types.words(source.of)}, which cannot be read as {wanted.type}"
            raise InputError(f"{said}; {_WIDE}") from None

    def _column(
        self, node: int, source: _Origin, type: pa.DataType, level: int, place: str
    ) -> tuple[Column, list[Begin]]:
        if source.of.is_repeated:
            many = self._map if types.is_map(source.of) else self._list
            return many(node, source, type, level, place)
        column, begins = self._one(node, source, type, level, place)
        if not source.may_miss:
            return column, begins
        _nullable(column)
        return column, [b._replace(there=0) for b in begins]

    def _list(
        self, node: int, source: _Origin, type: pa.DataType, level: int, place: str
    ) -> tuple[Column, list[Begin]]:
        if not pt.is_list(type):
            raise _Unfit
        slot, inner = self.slot(level), self._level()
        child, _ = self._one(node, source, type.value_type, inner, place, items=True)
        return Many(slot, level, type, inner, [child]), [Begin(slot, level, inner)]

    def _map(
        self, node: int, source: _Origin, type: pa.DataType, level: int, place: str
    ) -> tuple[Column, list[Begin]]:
        """Compile a map, which is a list of messages with a key and a value."""
        if not pt.is_map(type):
            raise _Unfit
        slot, inner, pair = self.slot(level), self._level(), self.node()
        self.pairs.add(pair)
        if source.comes:
            self.entry(node, source.of, k.MESSAGE, slot, inner, items=True, of=pair)
        children = []
        for number, kind in ((1, type.key_type), (2, type.item_type)):
            child, begins = self._one(pair, source.part(number), kind, inner, place)
            children.append(child)
            self.begins[pair] += begins
        return Many(slot, level, type, inner, children), [Begin(slot, level, inner)]

    def _level(self) -> int:
        self.levels += 1
        return self.levels - 1

    def _one(
        self, node: int, source: _Origin, type: pa.DataType, level: int, place: str, items: bool = False
    ) -> tuple[Column, list[Begin]]:
        """Compile one value of a field; what it begins with is that of a value that is there."""
        if types.is_message(source.of) and pt.is_struct(type):
            return self._struct(node, source, type, level, place, items)
        if types.is_timestamp(source.of) and pt.is_timestamp(type) and type.tz is not None:
            return self._moment(node, source, type, level, items)
        column = _flat(source.of, type, self.slot(level, 2), level)
        if source.comes:
            self.entry(node, source.of, _OPS[source.of.type], column.slot, level, items)
        return column, [Begin(column.slot, level)]

    def _struct(
        self, node: int, source: _Origin, type: pa.DataType, level: int, place: str, items: bool
    ) -> tuple[Column, list[Begin]]:
        slot, inner = self.slot(level), self.node()
        if source.comes:
            self.entry(node, source.of, k.MESSAGE, slot, level, items, inner)
        want = [type.field(i) for i in range(type.num_fields)]
        columns, begins = self.message(inner, source.inner, want, source.known, level, place)
        self.begins[inner] = begins
        return Struct(slot, level, type, columns), [Begin(slot, level), *begins]

    def _moment(
        self, node: int, source: _Origin, type: pa.DataType, level: int, items: bool
    ) -> tuple[Column, list[Begin]]:
        slot, inner = self.slot(level, 3), self.node()
        begins = [Begin(slot + 1, level), Begin(slot + 2, level)]
        if source.comes:
            self.entry(node, source.of, k.MESSAGE, slot, level, items, inner)
            self.entry(inner, source.part(1).of, k.INT64, slot + 1, level)
            self.entry(inner, source.part(2).of, k.INT32, slot + 2, level)
            self.begins[inner] = begins
        return Timestamps(slot, level, type, type), [Begin(slot, level), *begins]


class _Oneofs:
    """The oneofs of a message, in which the member that came last counts alone."""

    def __init__(self, tables: _Tables, node: int, level: int) -> None:
        self._tables, self._node, self._level = tables, node, level
        self._found: dict[str, OneofDescriptor] = {}

    def add(self, member: FieldDescriptor) -> None:
        """Take note of the oneof of a field that is wanted."""
        one = member.containing_oneof
        if one is not None and len(one.fields) > 1:
            self._found[one.full_name] = one

    def complete(self) -> list[Begin]:
        """Give each a slot for the member that came, wanted or not; return what these begin with."""
        begins = []
        for one in self._found.values():
            slot = self._tables.slot(self._level)
            begins.append(Begin(slot, self._level))
            for member in one.fields:
                entry = self._entry(member)
                entry[k.ONEOF], entry[k.OWN] = slot, self._level
        return begins

    def _entry(self, member: FieldDescriptor) -> list[int]:
        for entry in self._tables.entries[self._node]:
            if entry[k.NUMBER] == member.number:
                return entry
        entry = self._tables.entry(self._node, member, k.SKIP, 0, 0)
        entry[k.WIRE] = _WIRES[_OPS[member.type]]
        return entry


def _source(writer: Descriptor, reader: Descriptor | None, name: str) -> _Origin | None:
    """Return what a column is read from; None if nobody knows of it."""
    known = reader.fields_by_name.get(name) if reader is not None else None
    own = writer.fields_by_name.get(name) if known is None else writer.fields_by_number.get(known.number)
    of = known if own is None else own
    if of is None:
        return None
    return _Origin(of, own is not None, known.message_type if known is not None else None)


def _nullable(column: Column) -> None:
    """Let a column, and what is in it, be NULL."""
    column.nullable = True
    for child in column.children if isinstance(column, Struct) else ():
        _nullable(child)


def _flat(of: FieldDescriptor, want: pa.DataType, slot: int, level: int) -> Flat:
    """Return a column of plain values; raise _Unfit if they cannot be read as its type."""
    kind = of.type
    if kind == _F.TYPE_ENUM and (pt.is_string(want) or _holds(pa.int32(), want)):
        return Symbols(slot, level, want, want, of=of.enum_type)
    if kind in _UNSIGNED and (want == pa.int64() or fits(types.UNSIGNED, want)):
        return Unsigned(slot, level, want, want)
    if (kind == _F.TYPE_BOOL and pt.is_boolean(want)) or (
        kind in (_F.TYPE_STRING, _F.TYPE_BYTES) and (pt.is_string(want) or pt.is_binary(want))
    ):
        return Flat(slot, level, want, want)
    if pt.is_floating(want) and (kind == _F.TYPE_FLOAT or (kind == _F.TYPE_DOUBLE and want.bit_width == 64)):
        return Flat(slot, level, want, pa.float64())
    if of.message_type is None and kind not in _UNSIGNED and _holds(types.plain(of), want):
        return Flat(slot, level, want, pa.int64())
    raise _Unfit


def _holds(have: pa.DataType, want: pa.DataType) -> bool:
    return pt.is_integer(want) and pt.is_integer(have) and bool(want.bit_width >= have.bit_width)
