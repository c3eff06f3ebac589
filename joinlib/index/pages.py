"""Pages of mapped files that will be read soon: asked for together, so that the disk reads many at a time.

A page that is not in memory is waited for, 0.1 ms and more, when it is touched: one after the other. Where state is larger than
memory that is what a join does most of its time. Nothing is read twice, and where nothing is missing nothing is asked for.
"""

import ctypes
import mmap

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I64 = npt.NDArray[np.int64]

_END = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}
_SAMPLE = 8  # pages; where all of them are in memory the others are taken to be
_libc = ctypes.CDLL(None)


def ahead(column: pa.Array, rows: npt.NDArray[np.signedinteger]) -> None:
    """Asks for the pages that hold these rows of a column."""
    if not len(rows):
        return
    rows = rows.astype(np.int64) + column.offset
    *_, data = column.buffers()
    if data is None:
        return
    if len(column.buffers()) == 3:  # strings, binary
        ends = np.frombuffer(column.buffers()[1], _END[column.type])
        at = ends.ctypes.data + ends.itemsize * rows
        _ask(at, at + 2 * ends.itemsize - 1)
        first, last = (ends[n].astype(np.int64) for n in (rows, rows + 1))
        _ask(data.address + first, data.address + last)
    else:
        at = data.address + rows * column.type.bit_width // 8
        _ask(at, at + column.type.bit_width // 8)


def ahead_of_all(values: npt.NDArray[np.generic]) -> None:
    """Asks for the pages of a whole array."""
    if values.nbytes:
        _ask(np.array([values.ctypes.data]), np.array([values.ctypes.data + values.nbytes - 1]))


def _ask(firsts: I64, lasts: I64) -> None:
    """For all pages from the addresses `firsts` to `lasts`."""
    low, high = _spans(firsts // mmap.PAGESIZE, lasts // mmap.PAGESIZE)
    if _in_memory(low, high):
        return
    for first, last in zip(low.tolist(), high.tolist(), strict=True):
        pages = last - first + 1
        _libc.madvise(
            ctypes.c_void_p(first * mmap.PAGESIZE), ctypes.c_size_t(pages * mmap.PAGESIZE), mmap.MADV_WILLNEED
        )


def _spans(firsts: I64, lasts: I64) -> tuple[I64, I64]:
    """The same pages, ascending, each once, neighbours together."""
    order = np.argsort(firsts, kind="stable")
    firsts, lasts = firsts[order], np.maximum.accumulate(lasts[order])
    begins = np.flatnonzero(np.append(True, firsts[1:] > lasts[:-1] + 1))
    return firsts[begins], lasts[np.append(begins[1:], len(lasts)) - 1]


def _in_memory(low: I64, high: I64) -> bool:
    """As far as some of the pages tell, evenly spaced among all."""
    counts = high - low + 1
    ends = np.cumsum(counts)
    picked = (2 * np.arange(_SAMPLE) + 1) * ends[-1] // (2 * _SAMPLE)
    spans = np.searchsorted(ends, picked, "right")
    return all(map(_is_there, (high[spans] - (ends[spans] - 1 - picked)).tolist()))


def _is_there(page: int) -> bool:
    found = ctypes.c_ubyte()
    failed = _libc.mincore(ctypes.c_void_p(page * mmap.PAGESIZE), ctypes.c_size_t(1), ctypes.byref(found))
    return bool(failed or found.value & 1)
