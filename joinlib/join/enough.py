"""Discards rows of an anti join's second input that cannot change its result.

Where such a row contributes nothing but its event time, few rows are enough:

    window       |-----------|        any one row inside it excludes a row of the first input
    stretch    x · ·· · x             of rows no further apart than the window's width, the first and last do

A window that holds a row between the two holds one of them: it cannot begin after the first and end before
the last. Without a window, or with one that is open at one end, all rows are one stretch.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.model.operator import Operator
from joinlib.state.run import time_values
from joinlib.state.side import Arrival


def enough(part: Arrival, op: Operator) -> Arrival:
    """Return the rows of the second input that can exclude rows of the first; O(rows log rows).

    All rows are returned where more than their event time matters: other columns, or a key.
    """
    names = op.sides[1].schema.names[1:]
    if op.kind != "anti" or op.sides[1].keys or not _is_time(names, op):
        return part
    rows = part.rows.num_rows
    times = time_values(part.rows.column(names[0])) if names else np.zeros(rows, np.int64)
    kept = _ends(times, _width_us(op))
    if len(kept) == rows:
        return part
    return replace(part, rows=part.rows.take(pa.array(kept)), written=None)


def _is_time(names: list[str], op: Operator) -> bool:
    """Return whether the columns `names`, which a side stores, are read by time windows only."""
    read = set(op.predicate.columns) if op.predicate else set()
    bounded = {column for bound in op.bounds for column in (bound.left, bound.right)}
    return len(names) <= 1 and bounded.issuperset(names) and read.isdisjoint(names)


def _width_us(op: Operator) -> int | None:
    """Return a lower bound on the windows' width, µs; None without a window or with an open one."""
    if len(op.bounds) > 1:
        return 0
    for bound in op.bounds:
        if bound.low_us is not None and bound.high_us is not None:
            return max(bound.high_us - bound.low_us, 0)
    return None


def _ends(times: I64, width_us: int | None) -> I64:
    """Return the positions of the first and last row of each stretch, in arrival order. O(rows log rows)."""
    order = np.argsort(times, kind="stable")
    stretches = times[order] // (width_us + 1) if width_us is not None else np.zeros(len(times), np.int64)
    turns = stretches[1:] != stretches[:-1]
    first, last = np.concatenate([[True], turns]), np.concatenate([turns, [True]])
    return np.sort(order[first | last])
