"""Rows of partitions in the order of ORDER BY: who is before whom, who is equal.

    position    0 1 2 3 4 5 6          sorted rows, partition after partition
    head, end   0 0 0 0 4 4 4 / 4 4 4 4 7 7 7      of the partition
    peer, last  0 1 1 3 4 4 6 / 1 3 3 4 6 6 7      of the rows that ORDER BY leaves equal

Law: the order depends on the rows only, up to rows that are equal in all columns.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.expr import types as t
from joinlib.model.inputs import HASH
from joinlib.model.over import OrderKey, Over
from joinlib.over.codes import code, number, sort
from joinlib.route.content import Mask, groups, same


@dataclass(frozen=True)
class Layout:
    """Positions of rows; all arrays have a value for each position."""

    rows: I64  # the row at each position
    head: I64  # first position of the partition
    end: I64  # position after its last one
    peer: I64  # first position of the rows that are equal to it
    last: I64  # position after the last of them
    part: I64  # number of the partition
    group: I64  # number of the equal rows, from 0, through all partitions
    count: int  # of all rows, some of which may be at no position

    @cached_property
    def at(self) -> I64:
        """The position of each row; -1 for none."""
        found = np.full(self.count, -1)
        found[self.rows] = np.arange(len(self.rows))
        return found

    @property
    def ends(self) -> I64:
        """The last position of each partition that has rows."""
        return np.flatnonzero(np.arange(1, len(self.rows) + 1) == self.end)


def partitions(rows: pa.RecordBatch, over: Over) -> I64:
    """Return the number of each row's partition, from 0 in the order in which they appear. O(rows)."""
    if not over.partition or not rows.num_rows:
        return np.zeros(rows.num_rows, np.int64)
    hashes = rows.column(HASH)
    found = hashes.dictionary_encode().indices.to_numpy().astype(np.int64)
    columns = [rows.column(name) for name in over.partition]
    if distinct(columns):
        return found
    first = np.empty(int(found.max()) + 1, np.int64)
    first[found[::-1]] = np.arange(len(found))[::-1]
    heads = pa.array(first[found])
    if same(columns, [column.take(heads) for column in columns], rows.num_rows).all():
        return found
    order = np.argsort(hashes.to_numpy(), kind="stable")  # keys that differ have equal hashes
    starts = groups(columns, hashes.to_numpy(), order)
    found[:] = 0
    found[order[starts[1:]]] = 1
    found[order] = np.cumsum(found[order])
    return found


def distinct(columns: list[pa.Array]) -> bool:
    """Return whether keys of these columns have equal hashes only if they are equal (`route.hash`)."""
    kind = columns[0].type
    return len(columns) == 1 and not columns[0].null_count and (t.is_integer(kind) or t.is_time(kind))


def laid(rows: pa.RecordBatch, over: Over, parts: I64, by: tuple[OrderKey, ...]) -> Layout:
    """Sort rows of these partitions."""
    found = ordered(rows, parts, by)
    tied = found.last - found.peer > 1
    return replace(found, rows=untied(rows, over, found.rows, tied, found.peer)) if tied.any() else found


def ordered(rows: pa.RecordBatch, parts: I64, by: tuple[OrderKey, ...]) -> Layout:
    """Sort rows of these partitions; those that ORDER BY leaves equal stay in their order."""
    keys = [code(rows.column(k.column), k.descending, k.nulls_first) for k in by]
    found = sort([number(parts), *keys], rows.num_rows)
    return _layout(found.rows, parts[found.rows], found.new, rows.num_rows)


def within(layout: Layout, some: Mask) -> Layout:
    """Return the layout of some of the rows: nothing is sorted again."""
    if some.all():
        return layout
    kept = some[layout.rows]
    group = layout.group[kept]
    return _layout(layout.rows[kept], layout.part[kept], _begins(group), layout.count)


def _layout(order: I64, part: I64, new: Mask, count: int) -> Layout:
    """Return the layout of sorted rows of these partitions, of which `new` differ from those before them."""
    size = len(order)
    head, end = _spans(np.flatnonzero(_begins(part)), size)
    return Layout(order, head, end, *_spans(np.flatnonzero(new), size), part, np.cumsum(new) - 1, count)


def _begins(numbers: I64) -> Mask:
    """Return where another number than the one before begins."""
    found = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=found[1:])
    return found


def _spans(starts: I64, count: int) -> tuple[I64, I64]:
    """Return the first position of each one's span, and that after its last."""
    ends = np.append(starts[1:], count)[: len(starts)]
    widths = ends - starts
    return np.repeat(starts, widths), np.repeat(ends, widths)


def untied(rows: pa.RecordBatch, over: Over, order: I64, tied: Mask, peer: I64) -> I64:
    """Sort the rows at the positions that are `tied`, which ORDER BY leaves equal, by all their columns."""
    at = np.flatnonzero(tied)
    some = pa.array(order[at])
    codes = [code(rows.column(name).take(some)) for name, _ in over.columns if name not in over.partition]
    order = order.copy()
    order[at] = order[at[sort([number(peer[at]), *codes], len(at)).rows]]
    return order
