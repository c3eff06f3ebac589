"""Filters candidate tuples by key, then by time bounds, then by the predicate, each on what is left."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.expr import Column, Expr
from joinlib.expr.bound import Bound
from joinlib.join.rows import Tuples, flat
from joinlib.state.run import time_values

Mask = npt.NDArray[np.bool_]


def same_keys(tuples: Tuples, left: tuple[str, ...], right: tuple[str, ...]) -> Tuples:
    """Return the tuples whose key columns `left` and `right` are equal (equal hashes do not imply equal
    keys).
    """
    for a, b in zip(left, right, strict=True):
        tuples = tuples.filter(_equal(tuples.column(a), tuples.column(b)))
    return tuples


def within(tuples: Tuples, bounds: tuple[Bound, ...]) -> Tuples:
    """Return the tuples for which low <= right - left <= high holds for every bound; NULL is outside."""
    for bound in bounds:
        left, right = flat(tuples.column(bound.left)), flat(tuples.column(bound.right))
        apart = time_values(right) - time_values(left)
        mask = np.ones(len(apart), np.bool_)
        if bound.low_us is not None:
            mask &= apart >= bound.low_us
        if bound.high_us is not None:
            mask &= apart <= bound.high_us
        for column in (left, right):
            if column.null_count:
                mask &= column.is_valid().to_numpy(zero_copy_only=False)
        tuples = tuples.filter(mask)
    return tuples


def satisfying(tuples: Tuples, predicate: Expr | None) -> Tuples:
    """Return the tuples for which the predicate is true (neither false nor NULL)."""
    if predicate is None or not len(tuples):
        return tuples
    return tuples.filter(true(predicate.evaluate(tuples.column, len(tuples))))


def true(column: Column) -> Mask:
    """Return a mask, shape (rows,), of where a boolean column is true; NULL counts as false."""
    return flat(pc.fill_null(column, False)).to_numpy(zero_copy_only=False)


def _equal(a: Column, b: Column) -> Mask:
    mask = true(pc.equal(a, b))
    if pa.types.is_floating(a.type):  # as in Spark, NaN = NaN
        mask |= true(pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return mask
