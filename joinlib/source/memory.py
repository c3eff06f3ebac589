"""Reads and copies memory by its address, and calls functions by theirs, in kernels (numba, cached on disk).

For what a library in C hands out: structures of known form, texts that end somewhere else. An address is an
integer; that there is something at it is up to the caller.
"""

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils as untyped_cgutils
from numba.core import types as untyped_types
from numba.extending import intrinsic

from joinlib.arrays import I64

cgutils: Any = untyped_cgutils
types: Any = untyped_types
U8 = npt.NDArray[np.uint8]
_BYTE = ir.IntType(8).as_pointer()
_LINE_BREAK = 10


def _read(bits: int) -> Any:
    """Return what reads a signed integer of so many bits."""
    kind = getattr(types, f"int{bits}")

    def read(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.load(builder.inttoptr(given[0], ir.IntType(bits).as_pointer()), align=1)

        return kind(types.int64), generate

    return intrinsic(read)


def _copy(typing: Any, to: Any, address: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        to, address = (builder.inttoptr(one, _BYTE) for one in given[:2])
        cgutils.raw_memcpy(builder, to, address, given[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _call(count: int) -> Any:
    """Return what calls a function that takes so many words and returns one."""

    def call(typing: Any, function: Any, given: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            word = ir.IntType(64)
            at = builder.inttoptr(given[0], ir.FunctionType(word, [word] * count).as_pointer())
            return builder.call(at, cgutils.unpack_tuple(builder, given[1], count))

        return types.int64(types.int64, types.UniTuple(types.int64, count)), generate

    return intrinsic(call)


word: Any = _read(64)
half: Any = _read(32)
byte: Any = _read(8)
copy: Any = intrinsic(_copy)  # (to, from, bytes): they do not overlap
call1: Any = _call(1)
call2: Any = _call(2)
call5: Any = _call(5)


@nb.njit(cache=True, nogil=True)
def lined(addresses: I64, sizes: I64, ends: bool, starts: I64, out: U8) -> None:
    """Copy texts one behind the other, and say where each starts. Cost: O(bytes).

    Args:
        addresses: Where each text is.
        sizes: The bytes of each; -1: there is none.
        ends: Whether a line break follows each that is there.
        starts: Takes where each starts in `out`.
        out: Takes the texts.
    """
    to, at = out.ctypes.data, 0
    for i in range(sizes.shape[0]):
        starts[i] = at
        if sizes[i] >= 0:
            copy(to + at, addresses[i], sizes[i])
            at += sizes[i]
            if ends:
                out[at] = _LINE_BREAK
                at += 1
