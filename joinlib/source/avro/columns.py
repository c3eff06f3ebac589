"""Runs a program over messages, and makes Arrow columns of what it wrote."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from joinlib.source.avro import kernel as k
from joinlib.source.avro.program import Program
from joinlib.source.cells.arrow import ColumnCells, Malformed
from joinlib.source.payloads import Payloads

_WHY = {
    k.MALFORMED: "is not what its schema says: cut off, or longer, or written by another schema",
    k.REFUSED: "holds a value, in a union, of a type that cannot be read as the declared column",
}


class AvroRows:
    """A program, and how much room its arrays have needed so far."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._program, self._names = program, tuple(names)
        self._items = [1.0] * program.levels  # items of each level for a message

    def table(self, values: Sequence[bytes | None], header: int = 0) -> pa.Table:
        """Return the rows of messages, none of which is missing; their first bytes (`header`) are not read.

        Raises:
            Malformed: One cannot be read.
        """
        program, bodies = self._program, Payloads.of(values)
        data, starts = bodies.within
        raw = np.concatenate((np.frombuffer(program.constants, np.uint8), data))
        starts = starts + len(program.constants)
        ends = starts + bodies.sizes
        starts += header
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
