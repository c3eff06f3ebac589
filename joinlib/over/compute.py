"""Computes the rows of the result from the rows of partitions.

Columns are only gathered for the rows that QUALIFY keeps.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from joinlib.apart import Failing, KeepFailed, failing, set_aside
from joinlib.arrays import I64
from joinlib.errors import SpecError
from joinlib.expr import Expr
from joinlib.model.over import OrderKey, Over
from joinlib.over.calls import Work, made, too_large
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
    errors: Mapping[str, Mask]  # where a call has no value, by what is to be said of it

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

    def lost(self, error: str) -> Mask:
        """Return at which positions a call has no value, by what is said of it."""
        return self.errors.get(error, np.zeros(len(self.layout.rows), np.bool_))

    def passing(self, condition: Expr | None, at: I64) -> I64:
        """Return those of these positions at which a condition is true."""
        if condition is None or not len(at):
            return at
        return at[self.of(condition, at).fill_null(False).to_numpy(zero_copy_only=False)]

    def result(self, over: Over, at: I64 | None = None, failed: KeepFailed | None = None) -> pa.RecordBatch:
        """Return the result's rows at these positions, or at all, by QUALIFY and the select list.

        failed: takes rows for which an expression fails, in the columns of partitions and with the values of functions.

        Raises:
            SpecError: one fails, and nothing takes it.
        """
        at = np.arange(len(self.layout.rows)) if at is None else at
        try:
            return self._selected(over, at)
        except SpecError:
            if failed is None:
                raise
        tried = self._tried(over, at)
        left = set_aside(len(at), tried, SpecError, lambda spots: self._told(over, at[spots]), failed)
        return self._selected(over, at[left])

    def failing(self, over: Over, at: I64) -> list[Failing]:
        """Return for which of these positions, by their places among them, an expression fails."""
        return list(failing(len(at), self._tried(over, at), SpecError))

    def _tried(self, over: Over, at: I64) -> Callable[[int, int], pa.RecordBatch]:
        return lambda start, stop: self._selected(over, at[start:stop])

    def _selected(self, over: Over, at: I64) -> pa.RecordBatch:
        for error, lost in self.errors.items():
            if lost[at].any():
                raise SpecError(error)
        at = self.passing(over.qualify, at)
        return pa.record_batch([self.of(value, at) for _, value in over.select], over.schema)

    def _told(self, over: Over, at: I64) -> pa.RecordBatch:
        """Return rows of partitions with the values of functions; NULL stands for one that does not fit its type."""
        where, spots = pa.array(self.layout.rows[at]), pa.array(at)
        columns = {name: self.rows.column(name).take(where) for name, _ in over.columns}
        columns |= {call.sql: self.values[call.name].take(spots) for call in over.calls}
        return pa.record_batch(list(columns.values()), list(columns))


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
    *,
    lenient: bool = False,
) -> Computed:
    """Compute the functions for rows of whole partitions (columns $hash and those of `over`).

    layouts: of the rows, or of those for which they are computed. fresh: which rows are counted, see `calls`.
    begin: what each partition begins with, by its number. lenient: a sum that does not fit its type fails for its row,
    when that is asked for, and not for all.

    Raises:
        SpecError: a sum does not fit its type.
    """
    layouts = layouts_of(over, rows) if layouts is None else layouts
    base = next(iter(layouts.values()))
    values: dict[str, pa.Array] = {}
    state: dict[str, pa.Array] = {}
    errors: dict[str, Mask] = {}
    for call in over.calls:
        layout = layouts[call.order]
        counted = None if fresh is None else fresh[layout.rows]
        found = made(Work(call, layout, rows, counted, begin, lenient))
        values[call.name] = found.values if layout is base else _moved(found.values, layout, base)
        if fresh is not None:
            ends = pa.array(layout.ends)
            state |= {name: column.take(ends) for name, column in found.state.items()}
        if found.lost is not None:
            lost = pa.array(found.lost)
            moved = lost if layout is base else _moved(lost, layout, base)
            errors[too_large(call)] = moved.to_numpy(zero_copy_only=False)
    return Computed(rows, base, values, layouts, state, errors)


def _moved(values: pa.Array, layout: Layout, base: Layout) -> pa.Array:
    return values.take(pa.array(layout.at[base.rows]))
