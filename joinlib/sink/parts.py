"""Bytes of a whole column's values, of which rows in binary formats are joined: numbers, texts, items of lists.

Items of a list lie behind each other in the bytes of the list's child, so that a list's are cut out of them, not copied
one by one.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_SEPARATOR = pa.scalar(b"", pa.binary())


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """Join the parts of each value; NULL if one is."""
    return pc.binary_join_element_wise(*parts, _SEPARATOR)


def repeated(value: bytes, rows: int) -> pa.Array:
    """Return the same bytes for each row."""
    return pa.repeat(pa.scalar(value, pa.binary()), rows)


def zigzag(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return numbers whose sign is the last bit, so that small ones are short."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def varints(bits: npt.NDArray[np.uint64]) -> pa.Array:
    """Encode numbers: seven bits a byte, the least significant first."""
    sizes = np.ones(len(bits), np.int32)
    for size in range(1, 10):
        more = bits >> np.uint64(7 * size) != 0
        if not more.any():
            break
        sizes += more
    ends = np.cumsum(sizes, dtype=np.int32)
    starts, raw = ends - sizes, np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    for at in range(int(sizes.max(initial=0))):
        has = np.flatnonzero(sizes > at)
        byte = (bits[has] >> np.uint64(7 * at)).astype(np.uint8) & 127
        raw[starts[has] + at] = byte | ((sizes[has] > at + 1).astype(np.uint8) << 7)
    return binary(np.concatenate([starts[:1], ends]) if len(ends) else np.zeros(1, np.int32), raw)


def floats(column: pa.Array) -> pa.Array:
    """Encode FLOAT or DOUBLE; NULL is as zero."""
    return fixed(pc.fill_null(column, 0).to_numpy(), column.type.bit_width // 8)


def booleans(column: pa.Array) -> pa.Array:
    """Encode BOOLEAN as a byte; NULL is as false."""
    return fixed(pc.fill_null(column, fill_value=False).cast(pa.uint8()).to_numpy(), 1)


def integers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return whole numbers, days or moments as they are counted; NULL is as zero."""
    whole = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return pc.fill_null(whole.cast(pa.int64()), 0).to_numpy()


def texts(column: pa.Array) -> pa.Array:
    """Return text, or bytes; NULL is as none of them."""
    return pc.fill_null(column.cast(pa.binary()), b"")


def lengths(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return how many bytes each value has."""
    return pc.binary_length(values).cast(pa.int64()).to_numpy()


def spans(items: pa.Array, bounds: npt.NDArray[np.int32]) -> pa.Array:
    """Return what lies between bounds, as a value: the bytes of all items from one to the next."""
    edges = np.frombuffer(items.buffers()[1], np.int32)[items.offset :][: len(items) + 1]
    return binary(edges[bounds], items.buffers()[2])


def fixed(values: npt.NDArray[np.generic], size: int) -> pa.Array:
    """Return numbers as they lie in memory, of so many bytes each."""
    raw = np.ascontiguousarray(values).view(np.uint8).ravel()
    return binary(np.arange(0, len(raw) + 1, size, dtype=np.int32), raw)


def binary(edges: npt.NDArray[np.int32], raw: npt.NDArray[np.uint8] | pa.Buffer) -> pa.Array:
    """Return values of bytes. `edges`: where each begins, and where the last one ends."""
    data = raw if isinstance(raw, pa.Buffer) else pa.py_buffer(raw)
    edges = np.ascontiguousarray(edges, np.int32)
    return pa.BinaryArray.from_buffers(pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), data])
