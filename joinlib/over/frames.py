"""Which positions lie in the frame of each row: from `low` on, below `high`; none where high <= low.

Law: neither end ever decreases within a partition, so that a window slides over its rows.
"""

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.expr import types as t
from joinlib.model.over import Frame, OrderKey
from joinlib.over.codes import nulls
from joinlib.over.layout import Layout
from joinlib.route.content import Mask

Numbers = npt.NDArray[Any]  # int64 or float64


class FrameEnds(NamedTuple):
    """The frame of the row at each position."""

    low: I64
    high: I64


def frames(frame: Frame, layout: Layout, rows: pa.RecordBatch, by: tuple[OrderKey, ...]) -> FrameEnds:
    """Return the frame of each position. O(rows)."""
    at = np.arange(len(layout.rows))
    head, end = layout.head, layout.end
    if frame.unit == "rows":
        low = head if frame.low is None else np.clip(at + int(frame.low), head, end)
        high = end if frame.high is None else np.clip(at + int(frame.high) + 1, head, end)
        return FrameEnds(low, high)
    if frame.unit == "groups":
        starts = np.flatnonzero(np.append(True, layout.group[1:] != layout.group[:-1])[: len(at)])
        starts = np.append(starts, len(at))
        low = head if frame.low is None else _group(starts, layout, int(frame.low))
        high = end if frame.high is None else _group(starts, layout, int(frame.high) + 1)
        return FrameEnds(low, high)
    if frame.low in (None, 0) and frame.high in (None, 0):
        return FrameEnds(
            head if frame.low is None else layout.peer, end if frame.high is None else layout.last
        )
    return _ranged(frame, layout, rows, by[0])


def _group(starts: I64, layout: Layout, far: int) -> I64:
    """Return where the group begins that lies so many groups away."""
    there = np.clip(layout.group + far, 0, len(starts) - 1)
    return np.clip(starts[there], layout.head, layout.end)


def _ranged(frame: Frame, layout: Layout, rows: pa.RecordBatch, by: OrderKey) -> FrameEnds:
    column = rows.column(by.column).take(pa.array(layout.rows))
    known, values = ~nulls(column), _numbers(column)
    if values.dtype == np.float64:
        known &= ~np.isnan(values)  # they are equal to each other, and at no distance from numbers
    if by.descending:
        values = -values if values.dtype == np.float64 else ~values
    exact = values.dtype == np.int64
    low = (
        layout.head
        if frame.low is None
        else _reach(values, known, layout.head, layout.end, _far(frame.low, exact), False)
    )
    high = (
        layout.end
        if frame.high is None
        else _reach(values, known, layout.head, layout.end, _far(frame.high, exact), True)
    )
    if frame.low is not None:
        low = np.where(known, low, layout.peer)
    if frame.high is not None:
        high = np.where(known, high, layout.last)
    return FrameEnds(low, high)


def _far(far: float, exact: bool) -> float:
    return int(far) if exact else float(far)


def _numbers(column: pa.Array) -> Numbers:
    kind = column.type
    if t.is_float(kind):
        return column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    if t.is_decimal(kind):
        if kind.precision > 18:
            return (
                pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) * 10.0**kind.scale
            )
        words = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset)
        return np.where(nulls(column), 0, words[0::2])
    plain = column.view(f"int{kind.bit_width}").fill_null(0).to_numpy(zero_copy_only=False)
    return plain.astype(np.int64)


@nb.njit(cache=True, nogil=True)
def _reach(values: Numbers, known: Mask, head: I64, end: I64, far: float, behind: bool) -> I64:
    """Return the first position whose value is at least value + far, or more than it (`behind`)."""
    found = np.empty(values.shape[0], np.int64)
    at = 0
    for i in range(values.shape[0]):
        if not known[i]:
            found[i] = head[i]
            continue
        if i == head[i] or not known[i - 1] or at < head[i]:
            at = head[i]
            while not known[at]:
                at += 1
        wanted = values[i] + far
        wraps = (far > 0 and wanted < values[i]) or (far < 0 and wanted > values[i])
        while at < end[i] and known[at]:
            less = far > 0 if wraps else (values[at] <= wanted if behind else values[at] < wanted)
            if not less:
                break
            at += 1
        found[i] = at
    return found
