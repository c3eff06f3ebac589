"""Makes Arrow columns of what a kernel wrote into cells.

Numbers stay where the kernel wrote them; bytes and text are copied once.
"""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.arrays import I64
from joinlib.source.cells import kernel as k
from joinlib.source.cells.slots import Column, Flat, Many, Struct

_MOST_BYTES = 1 << 31  # of a column: Arrow's offsets have 32 bits


class Malformed(Exception):
    """Messages cannot be read; the text says why, without their content."""


class ColumnCells:
    """What a kernel writes.

    base     where the values of each slot begin in `cells`
    limits   how many rows each level has room for
    cells    8 bytes for each value, and as `reals` the same memory
    valid    which values are there
    rows     the number of rows of each level
    """

    def __init__(self, raw: npt.NDArray[np.uint8], slots: I64, room: Sequence[int]) -> None:
        """Make room for messages in `raw`: slots of the levels `slots`, levels of `room` rows."""
        self.raw, self.limits = raw, np.array(room, np.int64)
        self.base: I64 = np.concatenate(([0], np.cumsum(self.limits[slots])))
        self.cells: I64 = np.empty(self.base[-1], np.int64)
        self.reals = self.cells.view(np.float64)
        self.valid = np.ones(self.base[-1], np.uint8)
        self.rows = np.zeros(len(self.limits), np.int64)

    def column(self, column: Column) -> pa.Array:
        """Return what was written as a column."""
        rows = int(self.rows[column.level])
        if isinstance(column, Flat):
            return self.leaf(column, rows)
        children = [self.column(c) for c in column.children]
        if isinstance(column, Struct):
            return pa.Array.from_buffers(column.type, rows, [self.nulls(column, rows)], children=children)
        return self.each(column, rows, children)

    def leaf(self, column: Flat, rows: int) -> pa.Array:
        if column.read is None:  # nothing but null was written
            return pa.nulls(rows, column.type)
        kind, nulls = column.read, self.nulls(column, rows)
        if pt.is_decimal(kind):
            made = pa.Array.from_buffers(kind, rows, [nulls, self._decimals(column, rows)])
            return exact(made, column.type)
        if pt.is_string(kind) or pt.is_binary(kind) or pt.is_fixed_size_binary(kind):
            return self._texts(column, rows, nulls)
        values = self.slot(column.slot, rows)
        if pt.is_boolean(kind):
            bits = np.packbits(values.view(np.uint8)[::8], bitorder="little")
            return pa.Array.from_buffers(kind, rows, [nulls, pa.py_buffer(bits)])
        if pt.is_floating(kind):
            values = values.view(np.float64).astype(column.type.to_pandas_dtype(), copy=False)
        elif column.type.bit_width == 32:
            values = values.astype(np.int32)
        kind = kind if pt.is_timestamp(kind) else column.type
        return exact(pa.Array.from_buffers(kind, rows, [nulls, pa.py_buffer(values)]), column.type)

    def _texts(self, column: Flat, rows: int, nulls: pa.Buffer | None) -> pa.Array:
        lengths, begins = self.slot(column.slot, rows), self.slot(column.slot + 1, rows)
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
        return exact(made, column.type)

    def _decimals(self, column: Flat, rows: int) -> pa.Buffer:
        out = np.zeros(16 * rows, np.uint8)
        if not k.decimals(self.raw, self.slot(column.slot + 1, rows), self.slot(column.slot, rows), out):
            raise Malformed("holds a decimal of more digits than its schema says")
        return pa.py_buffer(out)

    def each(self, column: Many, rows: int, children: list[pa.Array]) -> pa.Array:
        offsets = np.append(self.slot(column.slot, rows), self.rows[column.inner]).astype(np.int32)
        if pt.is_map(column.type):
            fields = [column.type.key_field, column.type.item_field]
            children = [pa.StructArray.from_arrays(children, fields=fields)]
        buffers = [self.nulls(column, rows), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(column.type, rows, buffers, children=children)

    def slot(self, slot: int, rows: int) -> I64:
        return self.cells[self.base[slot] : self.base[slot] + rows]

    def nulls(self, column: Column, rows: int) -> pa.Buffer | None:
        """Return the bits of what is there; None if all is."""
        if not column.nullable:
            return None
        valid = self.valid[self.base[column.slot] : self.base[column.slot] + rows]
        return pa.py_buffer(np.packbits(valid, bitorder="little"))


def exact(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Return values that were checked, and cast to a column's type."""
    try:
        if pt.is_decimal(array.type):
            array.validate(full=True)
        return array if array.type == type else pc.cast(array, type)
    except pa.ArrowInvalid:
        raise Malformed(f"holds a value that is not exact as {type}") from None
