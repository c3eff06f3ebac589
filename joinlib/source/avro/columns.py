"""Runs a program over messages, and makes Arrow columns of what it wrote.

Numbers stay where the kernel wrote them; bytes and text are copied once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.arrays import I64
from joinlib.source.avro import kernel as k
from joinlib.source.avro.program import Column, Flat, Many, Program, Struct

_MOST_BYTES = 1 << 31  # of a column: Arrow's offsets have 32 bits


class Malformed(Exception):
    """Messages cannot be read; the text says why, without their content."""


_WHY = {
    k.MALFORMED: "is not what its schema says: cut off, or longer, or written by another schema",
    k.REFUSED: "holds a value, in a union, of a type that cannot be read as the declared column",
}


class AvroRows:
    """A program, and how much room its arrays have needed so far."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._program, self._names = program, tuple(names)
        self._items = [1.0] * program.levels  # items of each level for a message

    def table(self, values: Sequence[bytes], header: int = 0) -> pa.Table:
        """Return the rows of messages, whose first bytes (`header`) are not read.

        Raises:
            Malformed: One cannot be read.
        """
        program, raw = self._program, np.frombuffer(b"".join((self._program.constants, *values)), np.uint8)
        ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values))) + len(program.constants)
        starts = np.concatenate(([len(program.constants)], ends[:-1])) + header
        while True:
            made = _Cells(program, raw, [int(len(values) * items) + 1 for items in self._items])
            word, _, level = made.read(starts, ends)
            if word != k.FULL:
                break
            self._items[level] *= 2
        if word != k.FINE:
            raise Malformed(_WHY[word])
        arrays = [made.column(c) for c in program.columns]
        return pa.table(arrays, names=self._names) if arrays else pa.table({"$row": pa.nulls(len(values))})


@dataclass
class _Cells:
    """What the kernel writes: see there."""

    program: Program
    raw: npt.NDArray[np.uint8]
    room: list[int]

    def __post_init__(self) -> None:
        sizes = np.array(self.room, np.int64)[self.program.slots]
        self.base = np.concatenate(([0], np.cumsum(sizes)))
        self.cells: I64 = np.empty(self.base[-1], np.int64)
        self.valid = np.ones(self.base[-1], np.uint8)
        self.rows = np.zeros(self.program.levels, np.int64)

    def read(self, starts: I64, ends: I64) -> tuple[int, int, int]:
        """Run the program over messages; return how it ended, where, and which level was full."""
        room, reals, of = np.array(self.room, np.int64), self.cells.view(np.float64), self.program
        return k.read(
            self.raw,
            starts,
            ends,
            of.steps,
            of.table,
            self.base,
            room,
            self.cells,
            reals,
            self.valid,
            self.rows,
        )

    def column(self, column: Column) -> pa.Array:
        """Return what was written as a column."""
        rows = int(self.rows[column.level])
        if isinstance(column, Flat):
            return self._leaf(column, rows)
        children = [self.column(c) for c in column.children]
        if isinstance(column, Struct):
            return pa.Array.from_buffers(column.type, rows, [self._nulls(column, rows)], children=children)
        return self._each(column, rows, children)

    def _leaf(self, column: Flat, rows: int) -> pa.Array:
        if column.read is None:  # nothing but null was written
            return pa.nulls(rows, column.type)
        kind, nulls = column.read, self._nulls(column, rows)
        if pt.is_decimal(kind):
            made = pa.Array.from_buffers(kind, rows, [nulls, self._decimals(column, rows)])
            return _fitted(made, column.type)
        if pt.is_string(kind) or pt.is_binary(kind) or pt.is_fixed_size_binary(kind):
            return self._texts(column, rows, nulls)
        values = self._slot(column.slot, rows)
        if pt.is_boolean(kind):
            bits = np.packbits(values.view(np.uint8)[::8], bitorder="little")
            return pa.Array.from_buffers(kind, rows, [nulls, pa.py_buffer(bits)])
        if pt.is_floating(kind):
            values = values.view(np.float64).astype(column.type.to_pandas_dtype(), copy=False)
        elif column.type.bit_width == 32:
            values = values.astype(np.int32)
        kind = kind if pt.is_timestamp(kind) else column.type
        return _fitted(pa.Array.from_buffers(kind, rows, [nulls, pa.py_buffer(values)]), column.type)

    def _texts(self, column: Flat, rows: int, nulls: pa.Buffer | None) -> pa.Array:
        lengths, begins = self._slot(column.slot, rows), self._slot(column.slot + 1, rows)
        offsets = np.zeros(rows + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if offsets[-1] >= _MOST_BYTES:
            raise Malformed(f"has a column of more than {_MOST_BYTES >> 30} GiB; read less of it")
        narrow = offsets.astype(np.int32)
        out = np.empty(offsets[-1], np.uint8)
        k.gathered(self.raw, begins, narrow, out)
        made = pa.Array.from_buffers(pa.binary(), rows, [nulls, pa.py_buffer(narrow), pa.py_buffer(out)])
        if pt.is_fixed_size_binary(column.read):
            return pa.array(
                [None if v is None else str(UUID(bytes=v)) for v in made.to_pylist()], pa.string()
            )
        return _fitted(made, column.type)

    def _decimals(self, column: Flat, rows: int) -> pa.Buffer:
        out = np.zeros(16 * rows, np.uint8)
        if not k.decimals(self.raw, self._slot(column.slot + 1, rows), self._slot(column.slot, rows), out):
            raise Malformed("holds a decimal of more digits than its schema says")
        return pa.py_buffer(out)

    def _each(self, column: Many, rows: int, children: list[pa.Array]) -> pa.Array:
        offsets = np.append(self._slot(column.slot, rows), self.rows[column.inner]).astype(np.int32)
        if pt.is_map(column.type):
            fields = [column.type.key_field, column.type.item_field]
            children = [pa.StructArray.from_arrays(children, fields=fields)]
        buffers = [self._nulls(column, rows), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(column.type, rows, buffers, children=children)

    def _slot(self, slot: int, rows: int) -> I64:
        return self.cells[self.base[slot] : self.base[slot] + rows]

    def _nulls(self, column: Column, rows: int) -> pa.Buffer | None:
        """Return the bits of what is there; None if all is."""
        if not column.nullable:
            return None
        valid = self.valid[self.base[column.slot] : self.base[column.slot] + rows]
        return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _fitted(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Return values that were checked, and cast to a column's type."""
    try:
        if pt.is_decimal(array.type):
            array.validate(full=True)
        return array if array.type == type else pc.cast(array, type)
    except pa.ArrowInvalid:
        raise Malformed(f"holds a value that is not exact as {type}") from None
