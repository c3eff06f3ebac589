"""Encodes values as 64-bit words in the same order (instead of the zero padding of BS-Join, section 5.2,
algorithm 3).

Law: a <= b implies code(a) <= code(b); where the type has more than 64 bits, different values may share a
code. So an index over codes never misses a row, and the rows found are compared again by value. NaN is the
greatest value and -0.0 equals 0.0, as in SQL.
"""

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from joinlib.arrays import U64

_SIGN = np.uint64(1 << 63)


def codes(values: pa.Array) -> U64:
    """Return the code of each value, shape (rows,); NULL gets an arbitrary one. O(rows)."""
    type = values.type
    if pt.is_string(type) or pt.is_binary(type):
        return _prefixes(values)
    if pt.is_decimal(type):  # rounding to a double keeps the order
        return _floats(pc.cast(values, pa.float64()))
    if pt.is_floating(type):
        return _floats(pc.cast(values, pa.float64()))
    if pt.is_boolean(type):
        values = pc.cast(values, pa.int8())
    plain = values.view(f"int{values.type.bit_width}") if not pt.is_integer(values.type) else values
    return pc.fill_null(plain, 0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64) ^ _SIGN


def ordered(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return integers in the order of the doubles, shape (rows,); O(rows)."""
    numbers = numbers + 0.0
    numbers[np.isnan(numbers)] = np.nan  # one canonical, positive NaN
    return _turned(numbers.view(np.int64))


def doubles(ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the inverse of `ordered`; -0.0 becomes 0.0, and all NaNs become the same one."""
    return _turned(ordered).view(np.float64)


def _turned(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Reverse the order of negative doubles' bits, which decrease as integers; its own inverse."""
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))


def _floats(values: pa.Array) -> U64:
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    return ordered(numbers).view(np.uint64) ^ _SIGN


def _prefixes(values: pa.Array) -> U64:
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return _first_bytes(starts, raw)


@nb.njit(cache=True, nogil=True)
def _first_bytes(starts: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> U64:
    found = np.zeros(starts.shape[0] - 1, np.uint64)
    for i in range(found.shape[0]):
        shift = np.uint64(56)
        for at in range(starts[i], min(starts[i + 1], starts[i] + 8)):
            found[i] |= np.uint64(data[at]) << shift
            shift -= np.uint64(8)
    return found
