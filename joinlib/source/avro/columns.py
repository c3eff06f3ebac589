"""Runs a program over messages, and makes Arrow columns of what it wrote."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from joinlib.source.avro import kernel as k
from joinlib.source.avro.program import Program
from joinlib.source.cells.arrow import ColumnCells, Malformed

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
            made = ColumnCells(raw, program.slots, [int(len(values) * items) + 1 for items in self._items])
            word, _, level = k.read(
                raw, starts, ends, program.steps, program.table,
                made.base, made.limits, made.cells, made.reals, made.valid, made.rows,
            )  # fmt: skip
            if word != k.FULL:
                break
            self._items[level] *= 2
        if word != k.FINE:
            raise Malformed(_WHY[word])
        arrays = [made.column(c) for c in program.columns]
        return pa.table(arrays, names=self._names) if arrays else pa.table({"$row": pa.nulls(len(values))})
