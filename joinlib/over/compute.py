"""Computes the rows of the result from the rows of partitions.

Columns are only gathered for the rows that QUALIFY keeps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.expr import Expr
from joinlib.model.over import OrderKey, Over
from joinlib.over.calls import Work, made
from joinlib.over.layout import Layout, laid, partitions
from joinlib.route.content import Mask

Layouts = Mapping[tuple[OrderKey, ...], Layout]  # by ORDER BY

_NOTHING: MappingProxyType[str, pa.Array] = MappingProxyType({})


@dataclass(frozen=True)
class Computed:
    """The functions of the rows that have a position, in the order of the first function."""

    rows: pa.RecordBatch
    layout: Layout
    values: Mapping[str, pa.Array]  # by call
    layouts: Layouts
    state: Mapping[
        str, pa.Array
    ]  # how far calls have counted in each partition that has rows, by `calls.carried`

    def of(self, value: Expr, at: I64) -> pa.Array:
        """Evaluate an expression over columns and calls, at these positions."""
        spots = pa.array(at)
        where = pa.array(self.layout.rows[at])

        def column(name: str) -> pa.Array:
            return (
                self.values[name].take(spots) if name in self.values else self.rows.column(name).take(where)
            )

        found = value.evaluate(column, len(at))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def passing(self, condition: Expr | None, at: I64) -> I64:
        """Return those of these positions at which a condition is true."""
        if condition is None or not len(at):
            return at
        return at[self.of(condition, at).fill_null(False).to_numpy(zero_copy_only=False)]

    def result(self, over: Over, at: I64 | None = None) -> pa.RecordBatch:
        """Return the result's rows at these positions, or at all, by QUALIFY and the select list."""
        at = self.passing(over.qualify, np.arange(len(self.layout.rows)) if at is None else at)
        return pa.record_batch([self.of(value, at) for _, value in over.select], over.schema)


def layouts_of(over: Over, rows: pa.RecordBatch, parts: I64 | None = None) -> Layouts:
    """Sort rows (columns $hash and those of `over`) for all functions. parts: the numbers of their partitions."""
    parts = partitions(rows, over) if parts is None else parts
    return {by: laid(rows, over, parts, by) for by in {c.order: None for c in over.calls}}


def computed(
    over: Over,
    rows: pa.RecordBatch,
    layouts: Layouts | None = None,
    fresh: Mask | None = None,
    begin: Mapping[str, pa.Array] = _NOTHING,
) -> Computed:
    """Compute the functions for rows of whole partitions (columns $hash and those of `over`).

    layouts: of the rows, or of those for which they are computed. fresh: which rows are counted, see `calls`.
    begin: what each partition begins with, by its number.

    Raises:
        SpecError: a sum does not fit its type.
    """
    layouts = layouts_of(over, rows) if layouts is None else layouts
    base = next(iter(layouts.values()))
    values: dict[str, pa.Array] = {}
    state: dict[str, pa.Array] = {}
    for call in over.calls:
        layout = layouts[call.order]
        counted = None if fresh is None else fresh[layout.rows]
        found = made(Work(call, layout, rows, counted, begin))
        values[call.name] = found.values if layout is base else _moved(found.values, layout, base)
        if fresh is not None:
            ends = pa.array(layout.ends)
            state |= {name: column.take(ends) for name, column in found.state.items()}
    return Computed(rows, base, values, layouts, state)


def _moved(values: pa.Array, layout: Layout, base: Layout) -> pa.Array:
    return values.take(pa.array(layout.at[base.rows]))
