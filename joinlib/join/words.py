"""Encodes compared values as 64-bit words that keep their order.

Law: where `a sign b` holds of two values, it holds of their words.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.expr import Column, Expr
from joinlib.index.order import codes
from joinlib.join.rows import flat
from joinlib.state.run import time_values

_SIGN = np.uint64(1 << 63)
_LEAST, _MOST = -(2**63), 2**63 - 1


def words(value: Expr, column: Callable[[str], Column], rows: int, shift: float = 0, up: bool = True) -> I64:
    """Return the word of each row's value + shift, shape (rows,); O(rows). Doubles are rounded up or down.

    NULLs get an arbitrary word: neither a stored nor a probing row has NULL here.
    """
    values = flat(value.evaluate(column, rows))
    if pa.types.is_timestamp(values.type):
        return _plus(time_values(values), int(shift))
    if shift and pa.types.is_floating(values.type):
        values = pa.array(_rounded(pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False), shift, up))
    found = (codes(values) ^ _SIGN).view(np.int64)
    return _plus(found, int(shift)) if pa.types.is_integer(values.type) else found


def _plus(values: I64, by: int) -> I64:
    """Add `by`, saturating at the limits of int64."""
    if by > 0:
        return np.where(values > _MOST - by, _MOST, values + np.int64(min(by, _MOST)))
    return np.where(values < _LEAST - by, _LEAST, values + np.int64(max(by, _LEAST))) if by else values


def _rounded(values: npt.NDArray[np.float64], by: float, up: bool) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.nextafter(values + by, np.inf if up else -np.inf)
