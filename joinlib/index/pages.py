"""Prefetches pages of memory-mapped files that will be read soon, so that the disk reads many in parallel.

A page that is not in memory costs 0.1 ms or more when it is touched, one after the other. With state larger
than memory, a join spends most of its time on this. No page is read twice, and where none is missing,
nothing is requested.
"""

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.arrays import I64

Rows = npt.NDArray[np.signedinteger]
Items = TypeVar("Items", bound=Any)  # a sequence or an array

_LARGE = (pa.large_string(), pa.large_binary())
_SAMPLE = 8  # approximate number of addresses tested; if all are in memory, the rest is assumed to be
_libc = ctypes.CDLL(None)


def ahead(parts: Sequence[tuple[pa.Array, Rows]]) -> None:
    """Prefetch the pages that hold these rows of columns of one type. O(parts) if they are in memory.

    Of nested values nothing is prefetched.
    """
    parts = [(column, rows) for column, rows in parts if len(rows) and column.buffers()[-1] is not None]
    if not parts or pa.types.is_nested(parts[0][0].type):
        return
    some = [(column, _few(rows, -(-_SAMPLE // len(parts)))) for column, rows in _few(parts, _SAMPLE)]
    texts = len(parts[0][0].buffers()) == 3
    for places in (_ends, _values) if texts else (_values,):  # string offsets locate the bytes
        if not all(_in_memory(places(column, rows)[0]) for column, rows in some):
            for column, rows in parts:
                _ask(*places(column, rows))


def ahead_of_all(values: npt.NDArray[np.generic]) -> None:
    """Prefetch the pages of a whole array."""
    if values.nbytes:
        first, end = values.ctypes.data, values.ctypes.data + values.nbytes
        if not _in_memory(np.linspace(first, end - 1, _SAMPLE).astype(np.int64)):
            _ask(np.array([first]), np.array([end]))


def in_memory(values: npt.NDArray[np.generic]) -> float:
    """Return the share of an array's pages that are in memory, by a sample."""
    if not values.nbytes:
        return 1.0
    first, end = values.ctypes.data, values.ctypes.data + values.nbytes
    pages = np.unique(np.linspace(first, end - 1, _SAMPLE).astype(np.int64) // mmap.PAGESIZE).tolist()
    return sum(map(_is_there, pages)) / len(pages)


def _few(items: Items, count: int) -> Items:
    """Return about `count` of the items, evenly spaced."""
    return items[:: -(-len(items) // count)]


def _ends(column: pa.Array, rows: Rows) -> tuple[I64, I64]:
    """Return the first addresses of the rows' string offsets, and the addresses after them."""
    width = 8 if column.type in _LARGE else 4
    at = column.buffers()[1].address + width * (rows.astype(np.int64) + column.offset)
    return at, at + 2 * width


def _values(column: pa.Array, rows: Rows) -> tuple[I64, I64]:
    """Return the first addresses of the rows' values, and the addresses after them."""
    *_, ends, data = column.buffers()
    rows = rows.astype(np.int64) + column.offset
    if len(column.buffers()) == 3:
        known = np.frombuffer(ends, np.int64 if column.type in _LARGE else np.int32)
        return data.address + known[rows].astype(np.int64), data.address + known[rows + 1].astype(np.int64)
    bits = column.type.bit_width
    return data.address + rows * bits // 8, data.address + (rows + 1) * bits // 8


def _ask(firsts: I64, ends: I64) -> None:
    """Request all pages from the addresses `firsts` to those before `ends`."""
    low, high = _spans(firsts // mmap.PAGESIZE, np.maximum(ends - 1, firsts) // mmap.PAGESIZE)
    for first, last in zip(low.tolist(), high.tolist(), strict=True):
        pages = last - first + 1
        _libc.madvise(
            ctypes.c_void_p(first * mmap.PAGESIZE), ctypes.c_size_t(pages * mmap.PAGESIZE), mmap.MADV_WILLNEED
        )


def _spans(firsts: I64, lasts: I64) -> tuple[I64, I64]:
    """Return the same pages as ascending ranges, each page once and neighbours in one range."""
    order = np.argsort(firsts, kind="stable")
    firsts, lasts = firsts[order], np.maximum.accumulate(lasts[order])
    begins = np.flatnonzero(np.append(True, firsts[1:] > lasts[:-1] + 1))
    return firsts[begins], lasts[np.append(begins[1:], len(lasts)) - 1]


def _in_memory(addresses: I64) -> bool:
    return all(map(_is_there, (addresses // mmap.PAGESIZE).tolist()))


def _is_there(page: int) -> bool:
    found = ctypes.c_ubyte()
    failed = _libc.mincore(ctypes.c_void_p(page * mmap.PAGESIZE), ctypes.c_size_t(1), ctypes.byref(found))
    return bool(failed or found.value & 1)
