"""Runs tables of fields over messages, and makes Arrow columns of what came out.

Messages that the kernel will not read as they are (a message within them in pieces, a map with a key twice) are
read and written by Protobuf's own runtime, which merges them, and read again.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from joinlib.arrays import I64
from joinlib.source.cells.arrow import ColumnCells, Malformed, exact
from joinlib.source.cells.slots import Column, Flat, Many
from joinlib.source.payloads import Payloads
from joinlib.source.protobuf import kernel as k
from joinlib.source.protobuf.program import FieldTables, Symbols, Timestamps, Unsigned
from joinlib.source.protobuf.types import UNSIGNED

_MALFORMED = "is not what its schema says: cut off, or damaged, or written by another schema"
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # seconds of the years 1 to 9999, which Timestamp can be
_SECOND, _MICRO = 1_000_000, 1_000  # microseconds, and nanoseconds of one


class _Again(Exception):
    """Messages are to be written anew, so that they say each thing once."""


class ProtobufRows:
    """Tables of fields, and how much room their arrays have needed so far."""

    def __init__(self, tables: FieldTables, names: Sequence[str]) -> None:
        self._tables, self._names = tables, tuple(names)
        self._items = [1.0] * tables.levels  # items of each level for a message

    def table(self, values: Sequence[bytes | None], header: int = 0) -> pa.Table:
        """Return the rows of messages, none of which is missing; their first bytes (`header`) are not read.

        Raises:
            Malformed: One cannot be read.
        """
        try:
            return self._read(values, header)
        except _Again:
            anew = self._anew(values, header)
        try:
            return self._read(anew, 0)
        except _Again:
            raise Malformed(_MALFORMED) from None

    def _read(self, values: Sequence[bytes | None], header: int) -> pa.Table:
        of, bodies = self._tables, Payloads.of(values)
        raw, begins = bodies.within
        starts, ends = begins + header, begins + bodies.sizes
        while True:
            made = _ProtobufCells(raw, of.slots, [int(len(values) * items) + 1 for items in self._items])
            word, _, level = k.read(
                raw, starts, ends, of.entries, of.nodes, of.begins,
                made.base, made.limits, made.cells, made.reals, made.valid, made.rows,
            )  # fmt: skip
            if word != k.FULL:
                break
            self._items[level] *= 2
        if word == k.AGAIN:
            raise _Again
        if word != k.FINE:
            raise Malformed(_MALFORMED)
        arrays = [made.column(c) for c in of.columns]
        return pa.table(arrays, names=self._names) if arrays else pa.table({"$row": pa.nulls(len(values))})

    def _anew(self, values: Sequence[bytes | None], header: int) -> list[bytes]:
        """Return messages that say each thing once."""
        message = GetMessageClass(self._tables.writer)
        try:
            return [message.FromString((v or b"")[header:]).SerializePartialToString() for v in values]
        except DecodeError:
            raise Malformed(_MALFORMED) from None


class _ProtobufCells(ColumnCells):
    """Cells with what only Protobuf has: enums that are numbers, numbers without a sign, seconds with nanoseconds."""

    def leaf(self, column: Flat, rows: int) -> pa.Array:
        if isinstance(column, Symbols):
            return self._symbols(column, rows)
        if isinstance(column, Unsigned):
            return self._unsigned(column, rows)
        if isinstance(column, Timestamps):
            return self._moments(column, rows)
        return super().leaf(column, rows)

    def each(self, column: Many, rows: int, children: list[pa.Array]) -> pa.Array:
        if pt.is_map(column.type) and self._twice(column, rows, children[0]):
            raise _Again
        return super().each(column, rows, children)

    def _twice(self, column: Many, rows: int, keys: pa.Array) -> bool:
        """Return whether a map has a key twice."""
        starts = np.append(self.slot(column.slot, rows), self.rows[column.inner])
        if rows == 0 or np.diff(starts).max() < 2:
            return False
        codes = keys.dictionary_encode()
        of_row = np.repeat(np.arange(rows), np.diff(starts)) * len(codes.dictionary)
        pairs = of_row + codes.indices.to_numpy(zero_copy_only=False)
        return len(np.unique(pairs)) < len(pairs)

    def _symbols(self, column: Symbols, rows: int) -> pa.Array:
        """Return the names of an enum's numbers, or the numbers if these are wanted."""
        values, there = self.slot(column.slot, rows), self._there(column, rows)
        if not pt.is_string(column.type):
            return exact(pa.array(values, mask=~there), column.type)
        assert column.of is not None
        numbers = np.array(sorted(column.of.values_by_number), np.int64)
        names = pa.array([column.of.values_by_number[n].name for n in numbers.tolist()], pa.string())
        at = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
        if np.any((numbers[at] != values) & there):
            raise Malformed(f"holds a number that is no name of enum {column.of.full_name}")
        return pa.DictionaryArray.from_arrays(pa.array(at, mask=~there), names).dictionary_decode()

    def _unsigned(self, column: Unsigned, rows: int) -> pa.Array:
        values, there = self.slot(column.slot, rows), self._there(column, rows)
        if pt.is_integer(column.type):
            if np.any((values < 0) & there):
                raise Malformed(
                    "holds a number of 64 bits without a sign that is none of BIGINT; declare DECIMAL(20, 0)"
                )
            return pa.array(values, column.type, mask=~there)
        wide: I64 = np.zeros((rows, 2), np.int64)  # the lower half comes first
        wide[:, 0] = values
        buffers = [self.nulls(column, rows), pa.py_buffer(wide)]
        return exact(pa.Array.from_buffers(UNSIGNED, rows, buffers), column.type)

    def _moments(self, column: Timestamps, rows: int) -> pa.Array:
        there = self._there(column, rows)
        seconds, nanos = self.slot(column.slot + 1, rows), self.slot(column.slot + 2, rows)
        strange = (seconds < _FIRST) | (seconds > _LAST) | (nanos < 0) | (nanos >= _SECOND * _MICRO)
        if np.any(strange & there):
            raise Malformed("holds a google.protobuf.Timestamp that is no time between the years 1 and 9999")
        if np.any((nanos % _MICRO != 0) & there):
            raise Malformed(
                "holds a google.protobuf.Timestamp that is not a whole microsecond, so not exact as TIMESTAMP; "
                "declare STRUCT<seconds: BIGINT, nanos: INT>"
            )
        return pa.array(seconds * _SECOND + nanos // _MICRO, column.type, mask=~there)

    def _there(self, column: Column, rows: int) -> np.ndarray:
        return self.valid[self.base[column.slot] : self.base[column.slot] + rows].astype(bool)
