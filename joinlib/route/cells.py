"""Numbers the cells of values, and says which cells the partners of a row lie in (`model.inputs.Cells`).

Law: numbers do not decrease with the values, in SQL's order of them, so the cell of a partner lies between the cells
of the least and of the greatest value that a partner may have. Cost: O(rows).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64
from joinlib.model.inputs import Cells
from joinlib.route.maps import flat

_LAST = 2**62  # of doubles: infinities and NaN too


def own(cells: Cells, number: int, rows: pa.RecordBatch) -> I64:
    """Return the cell of each row of an input."""
    return _cells(_values(cells, number, rows), 0, cells.width, up=True)


def reached(cells: Cells, number: int, rows: pa.RecordBatch) -> tuple[I64, I64]:
    """Return the first and the last cell in which partners of each row of an input may lie."""
    values, (low, high) = _values(cells, number, rows), cells.reach(number)
    return _cells(values, low, cells.width, up=False), _cells(values, high, cells.width, up=True)


def _values(cells: Cells, number: int, rows: pa.RecordBatch) -> pa.Array:
    return flat(cells.values[number].evaluate(rows.column, rows.num_rows))


def _cells(values: pa.Array, shift: float, width: float, up: bool) -> I64:
    if pa.types.is_integer(values.type):
        plain = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return _plus(plain, int(shift)) >> (int(width).bit_length() - 1)
    numbers = pc.fill_null(pc.cast(values, pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.nextafter(numbers + shift, np.inf if up else -np.inf) if shift else numbers
        found = np.clip(np.floor(moved / width), -_LAST, _LAST)
    return np.where(np.isnan(found), float(_LAST), found).astype(np.int64)


def _plus(values: I64, by: int) -> I64:
    """Add `by`; what would not fit becomes the limit of int64."""
    info = np.iinfo(np.int64)
    return np.clip(values, info.min - min(by, 0), info.max - max(by, 0)) + np.int64(by)
