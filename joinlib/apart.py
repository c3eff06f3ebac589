"""Finds the rows for which a computation over many rows fails, and computes the rest without them.

    all rows ──fails──► halves ──fails──► halves … ─► single rows with their errors      the others: once more, together

Law: a row fails with others exactly if it fails alone. Cost: nothing where nothing fails; else about two computations
for each halving of each failing row.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.arrays import I64

Mask = npt.NDArray[np.bool_]
R = TypeVar("R")


class Failing(NamedTuple):
    """A row that fails."""

    at: int  # its position
    error: Exception


KeepFailed = Callable[[pa.RecordBatch, Sequence[Failing]], None]  # is told rows, and which of them fail


def apart(
    rows: pa.RecordBatch, compute: Callable[[pa.RecordBatch], R], errors: type[Exception]
) -> tuple[pa.RecordBatch, R | None, list[Failing]]:
    """Return the rows that do not fail, what is computed of them (None: there are none), and the others."""
    try:
        return rows, compute(rows), []
    except errors:
        found = list(
            failing(rows.num_rows, lambda start, stop: compute(rows.slice(start, stop - start)), errors)
        )
    sound = np.ones(rows.num_rows, np.bool_)
    sound[[one.at for one in found]] = False
    left = rows.filter(pa.array(sound))
    return left, compute(left) if left.num_rows else None, found


def set_aside(
    count: int,
    compute: Callable[[int, int], object],
    errors: type[Exception],
    rows: Callable[[I64], pa.RecordBatch],
    failed: KeepFailed,
) -> Mask:
    """Give the rows for which `compute(start, stop)` fails to `failed`; return which are left, shape (count,).

    rows: makes those at these positions, as they are given.
    """
    left, found = np.ones(count, np.bool_), list(failing(count, compute, errors))
    if found:
        at = np.array([one.at for one in found])
        left[at] = False
        failed(rows(at), [Failing(place, one.error) for place, one in enumerate(found)])
    return left


def failing(
    count: int, compute: Callable[[int, int], object], errors: type[Exception] | tuple[type[Exception], ...]
) -> Iterator[Failing]:
    """Yield the rows for which `compute(start, stop)` fails, in their order, by halving."""
    waiting = [(0, count)]
    while waiting:
        start, stop = waiting.pop()
        if start == stop:
            continue
        try:
            compute(start, stop)
        except errors as error:
            if stop - start == 1:
                yield Failing(start, error)
            else:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
