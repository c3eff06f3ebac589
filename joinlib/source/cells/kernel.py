"""Copies what cells say of bytes (numba, cached on disk). Cost: O(bytes)."""

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I64

U8 = npt.NDArray[np.uint8]


@nb.njit(cache=True, nogil=True)
def gathered(raw: U8, begins: I64, offsets: npt.NDArray[np.int32], out: U8) -> None:
    """Write the bytes of values one after the other."""
    for row in range(begins.shape[0]):
        at = begins[row] - offsets[row]
        for i in range(offsets[row], offsets[row + 1]):
            out[i] = raw[at + i]


@nb.njit(cache=True, nogil=True)
def decimals(raw: U8, begins: I64, lengths: I64, out: U8) -> bool:
    """Write numbers of any length, most significant byte first, as 16 bytes, least first; False if one is longer."""
    for row in range(begins.shape[0]):
        begin, size = begins[row], lengths[row]
        sign = 255 if size > 0 and raw[begin] > 127 else 0
        for i in range(16):
            out[16 * row + i] = raw[begin + size - 1 - i] if i < size else sign
        for i in range(16, size):
            if raw[begin + size - 1 - i] != sign:
                return False
        if size > 16 and (out[16 * row + 15] > 127) != (sign == 255):
            return False
    return True
