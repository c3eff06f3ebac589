"""Compiles how messages of one writer's schema become the columns that are declared.

A writer's type is read as a column's type by Avro's rules: fields by their names, or by the aliases that the
reader's schema gives; numbers of a wider type; text and bytes as each other; a union by its branches. A field
that the writer lacks has the reader's default, or NULL. What is not wanted is skipped.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.source.avro import kernel as k
from joinlib.source.avro.schema import NONE, AvroField, AvroType
from joinlib.source.avro.types import encoded
from joinlib.source.cells.slots import Column, Flat, Many, Struct
from joinlib.source.fit import fits
from joinlib.spec.ddl import MAX_PRECISION

_MOST_STEPS = 100_000
_WIDE = "declare a type that holds all its values, or leave the column out"
_REALS = {"int": k.REAL, "long": k.REAL, "float": k.FLOAT, "double": k.DOUBLE}
_INTS = {"int": k.INT, "long": k.LONG}
_TEXTS = {"string": k.BYTES, "bytes": k.BYTES, "enum": k.ENUM, "fixed": k.FIXED}
_SKIPS = {"boolean": (k.SKIP_FIXED, 1), "float": (k.SKIP_FIXED, 4), "double": (k.SKIP_FIXED, 8), "null": None,
          "int": (k.SKIP_NUMBER, 0), "long": (k.SKIP_NUMBER, 0), "enum": (k.SKIP_NUMBER, 0),
          "string": (k.SKIP_BYTES, 0), "bytes": (k.SKIP_BYTES, 0)}  # fmt: skip


class Program(NamedTuple):
    """What the kernel needs, and how columns are made of what it writes."""

    steps: I64
    table: I64
    constants: bytes
    slots: I64  # the level of each slot
    columns: tuple[Column, ...]
    levels: int


class Unfit(Exception):
    """A writer's type cannot be read as a column's type."""


def compiled(writer: AvroType, want: pa.Schema, reader: AvroType | None) -> Program:
    """Compile how a writer's records become columns.

    Args:
        writer: The schema of the messages.
        want: The columns.
        reader: The reader's schema, with aliases and defaults; None if there is none.

    Raises:
        InputError: A column cannot be read from such messages; the message names it.
    """
    if writer.kind != "record":
        raise InputError(f"is {writer.words}; messages must be records")
    made = _Compiler()
    columns = [made.column(f.type, 0) for f in want]
    made.record(writer, list(want), columns, reader, "")
    made.step(k.END)
    return Program(
        np.array(made.steps, np.int64).reshape(-1),
        np.array(made.table, np.int64),
        bytes(made.constants),
        np.array(made.slots, np.int64),
        tuple(columns),
        made.levels,
    )


@dataclass
class _Compiler:
    steps: list[int] = field(default_factory=list)
    table: list[int] = field(default_factory=list)
    constants: bytearray = field(default_factory=bytearray)
    slots: list[int] = field(default_factory=list)
    levels: int = 1
    depth: int = 0

    # --- where columns go ------------------------------------------------------------------------------------------

    def column(self, type: pa.DataType, level: int) -> Column:
        """Return a column of a type, whose values nobody writes yet."""
        slot = len(self.slots)
        self.slots += [level] * (2 if _is_bytes(type) else 1)
        if pt.is_struct(type):
            return Struct(
                slot, level, type, [self.column(type.field(i).type, level) for i in range(type.num_fields)]
            )
        if not (pt.is_list(type) or pt.is_map(type)):
            return Flat(slot, level, type)
        inner = self.levels
        self.levels += 1
        kinds = [type.key_type, type.item_type] if pt.is_map(type) else [type.value_type]
        return Many(slot, level, type, inner, [self.column(t, inner) for t in kinds])

    # --- steps -----------------------------------------------------------------------------------------------------

    def step(self, op: int, *numbers: int) -> int:
        """Add a step; return where its numbers are."""
        if len(self.steps) > k.STEP * _MOST_STEPS:
            raise InputError(f"has more than {_MOST_STEPS} steps; leave out columns that are not needed")
        self.steps += [op, *numbers, *[0] * (k.STEP - 1 - len(numbers))]
        return len(self.steps) - k.STEP + 1

    @property
    def here(self) -> int:
        return len(self.steps)

    # --- reading ---------------------------------------------------------------------------------------------------

    def record(
        self,
        writer: AvroType,
        want: list[pa.Field],
        columns: list[Column],
        reader: AvroType | None,
        place: str,
    ) -> None:
        """Read the fields of a record in the writer's order, then those that it lacks."""
        known = {f.name: f for f in reader.fields} if reader is not None and reader.kind == "record" else {}
        there = {f.name for f in writer.fields}
        # The column that a field of the writer goes to.
        source: dict[str, tuple[pa.Field, Column, AvroField | None]] = {}
        for wanted, column in zip(want, columns):
            of = known.get(wanted.name)
            name = next((n for n in (wanted.name, *(of.aliases if of else ())) if n in there), None)
            if name is not None:
                source.setdefault(name, (wanted, column, of))
        for own in writer.fields:
            if own.name not in source:
                self.skip(own.type, f"{place}{own.name}")
                continue
            wanted, column, of = source[own.name]
            at = f"{place}{wanted.name}"
            if place and own.type.nullable and not wanted.nullable:
                raise InputError(f"'{at}' may be null, but is declared NOT NULL; declare it without")
            self.value(own.type, column, of.type if of else None, at)
        for wanted, column in zip(want, columns):
            if all(column is not other for _, other, _ in source.values()):
                self.lacking(wanted, column, known.get(wanted.name), f"{place}{wanted.name}")

    def lacking(self, wanted: pa.Field, column: Column, reader: AvroField | None, place: str) -> None:
        """Fill a column that the writer does not know."""
        if reader is None or reader.default is NONE:
            if not wanted.nullable:
                raise InputError(
                    f"it has no field '{place}', which is declared NOT NULL and has no default; declare it without"
                )
            self.null(column)
            return
        try:
            raw = encoded(reader.type, reader.default)
        except (ValueError, TypeError, KeyError, AttributeError, struct.error):
            raise InputError(
                f"the default of field '{place}' is not {reader.type.words}; correct the schema"
            ) from None
        begin = self._constant(raw)
        self.step(k.DEFAULT, begin, begin + len(raw))
        self.value(reader.type, column, reader.type, place)
        self.step(k.BACK)

    def value(self, writer: AvroType, column: Column, reader: AvroType | None, place: str) -> None:
        """Read a value of the writer's type into a column.

        Raises:
            InputError: It cannot be read as the column's type.
        """
        try:
            self._value(writer, column, reader, f"{place}.")
        except Unfit:
            raise InputError(
                f"field '{place}' is {writer.words}, which cannot be read as {column.type}; {_WIDE}"
            ) from None

    def _value(self, writer: AvroType, column: Column, reader: AvroType | None, place: str) -> None:
        if writer.kind == "union":
            self._union(writer, column, reader, place)
        elif writer.kind == "null":
            self.null(column)
        elif isinstance(column, Flat):
            self._leaf(writer, column)
        elif isinstance(column, Struct) and writer.kind == "record":
            fields = [column.type.field(i) for i in range(column.type.num_fields)]
            self.record(writer, fields, column.children, _one(reader, "record"), place)
        elif isinstance(column, Many) and writer.kind == ("map" if pt.is_map(column.type) else "array"):
            self._each(writer, column, _one(reader, writer.kind), place)
        else:
            raise Unfit

    def _union(self, writer: AvroType, column: Column, reader: AvroType | None, place: str) -> None:
        """Read each branch; one that does not fit is refused where it comes, if another one fits."""
        fitting = []

        def read(branch: AvroType) -> None:
            begin = self.here
            try:
                self._value(branch, column, reader, place)
                fitting.append(branch.kind)
            except Unfit:
                del self.steps[begin:]
                self.step(k.REFUSE)

        self._branches(writer, read)
        if not set(fitting) - {"null"} and any(b.kind != "null" for b in writer.branches):
            raise Unfit

    def _branches(self, union: AvroType, each: Callable[[AvroType], None]) -> None:
        """Do something else with each branch of a union."""
        at, ends = len(self.table), []
        self.step(k.UNION, len(union.branches), at)
        self.table += [0] * len(union.branches)
        for number, branch in enumerate(union.branches):
            self.table[at + number] = self.here
            each(branch)
            ends.append(self.step(k.GO))
        for end in ends:
            self.steps[end] = self.here

    def _leaf(self, writer: AvroType, column: Flat) -> None:
        op, read = _as(writer, column.type)
        if column.read is not None and column.read != read:
            raise Unfit  # another branch of a union has another unit or scale
        column.read = read
        more: tuple[int, ...] = (writer.size,) if op == k.FIXED else ()
        if op == k.ENUM:
            more = (len(writer.symbols), len(self.table))
            for symbol in writer.symbols:
                self.table += [self._constant(symbol.encode()), len(symbol.encode())]
        self.step(op, column.slot, column.level, *more)

    def _each(self, writer: AvroType, column: Many, reader: AvroType | None, place: str) -> None:
        assert writer.of is not None
        again = self._open(column.slot, column.level, column.inner)
        done = self.step(k.NEXT, column.inner) + 1
        if writer.kind == "map":
            key = column.children[0]
            if not isinstance(key, Flat) or not pt.is_string(key.type):
                raise Unfit
            self._leaf(AvroType("string"), key)
        self._value(writer.of, column.children[-1], reader.of if reader else None, place)
        self.step(k.ITEM, column.inner, again)
        self._close(done)

    def null(self, column: Column) -> None:
        """Let a column, and all that is in it, be NULL."""
        column.nullable = True
        if isinstance(column, Many):
            self.step(k.NO_LIST, column.slot, column.level, column.inner)
            return
        self.step(k.NULL, column.slot, column.level)
        for child in column.children if isinstance(column, Struct) else ():
            self.null(child)

    # --- skipping --------------------------------------------------------------------------------------------------

    def skip(self, type: AvroType, place: str) -> None:
        """Pass over a value that no column wants."""
        if type.kind == "union":
            self._branches(type, lambda branch: self.skip(branch, place))
        elif type.kind == "record":
            for inner in type.fields:
                self.skip(inner.type, f"{place}.{inner.name}")
        elif type.of is not None:
            self._skip_items(type.of, type.kind == "map", place)
        elif type.kind == "fixed":
            self.step(k.SKIP_FIXED, type.size)
        elif type.kind not in _SKIPS:
            raise InputError(
                f"field '{place}' holds itself ({type.name}), which cannot be read; leave it out of the schema"
            )
        elif found := _SKIPS[type.kind]:
            self.step(*found)

    def _skip_items(self, type: AvroType, keys: bool, place: str) -> None:
        again = self._open(-1)
        done = self.step(k.NEXT, -1) + 1
        if keys:
            self.step(k.SKIP_BYTES)
        self.skip(type, place)
        self.step(k.GO, again)
        self._close(done)

    def _open(self, *column: int) -> int:
        """Begin an array, whose items nobody wants if its slot is -1."""
        self.depth += 1
        if self.depth > k.DEPTH:
            raise InputError(f"has more than {k.DEPTH} arrays within arrays; flatten the schema")
        self.step(k.LIST, *column)
        return self.here

    def _close(self, done: int) -> None:
        self.depth -= 1
        self.steps[done] = self.here

    def _constant(self, raw: bytes) -> int:
        self.constants += raw
        return len(self.constants) - len(raw)


def _one(reader: AvroType | None, kind: str) -> AvroType | None:
    """Return the part of a reader's type that is of a kind."""
    if reader is None or reader.kind == kind:
        return reader
    return next((b for b in reader.branches if b.kind == kind), None)


def _is_bytes(type: pa.DataType) -> bool:
    return pt.is_string(type) or pt.is_binary(type) or pt.is_decimal(type)


def _as(writer: AvroType, want: pa.DataType) -> tuple[int, pa.DataType]:
    """Return how a value is read for a column's type, and the Arrow type that it is read as; or raise Unfit."""
    kind, logical = writer.kind, writer.logical
    if pt.is_boolean(want) and kind == "boolean":
        return k.BOOL, want
    if pt.is_integer(want) and kind in _INTS and want.bit_width >= (32 if kind == "int" else 64):
        return _INTS[kind], pa.int64()
    if pt.is_floating(want) and kind in _REALS and not (kind == "double" and want.bit_width == 32):
        return _REALS[kind], pa.float64()
    if pt.is_date(want) and logical == "date":
        return k.INT, want
    if pt.is_timestamp(want) and "timestamp" in logical:
        local, unit = logical.startswith("local"), {"millis": "ms", "micros": "us", "nanos": "ns"}
        if local or want.tz is not None:
            return k.LONG, pa.timestamp(unit[logical.rpartition("-")[2]], want.tz)
    if pt.is_decimal(want) and logical == "decimal" and fits(decimal := _decimal(writer), want):
        return _TEXTS[kind], decimal
    if (pt.is_string(want) or pt.is_binary(want)) and kind in _TEXTS:
        return _as_text(writer, want)
    raise Unfit


def _decimal(type: AvroType) -> pa.DataType:
    """Return the Arrow type of a decimal; digits that Arrow cannot hold are refused when they come."""
    return pa.decimal128(min(type.precision, MAX_PRECISION), min(type.scale, MAX_PRECISION))


def _as_text(writer: AvroType, want: pa.DataType) -> tuple[int, pa.DataType]:
    if writer.kind == "fixed" and pt.is_string(want):
        if writer.logical != "uuid":
            raise Unfit
        return k.FIXED, pa.binary(16)  # written out as text
    if writer.kind == "enum" and not pt.is_string(want):
        raise Unfit
    return _TEXTS[writer.kind], want
