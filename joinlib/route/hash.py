"""Hashes keys to 64 bits.

Law: equal keys have equal hashes; rows with equal hashes are later compared by key.

A key that is one column of at most 64 bits is mixed by a bijection: then equal hashes imply equal keys
(`model.keys`). Keys follow Spark SQL: NaN equals NaN, -0.0 equals 0.0; columns of one key class have the
same type in every input.
"""

from collections.abc import Sequence

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import U64


def key_hash(columns: Sequence[pa.Array], bits: int = 64) -> U64:
    """Return the hash of each row's key, shape (rows,). NULL hashes like some value.

    bits: only the top bits vary; fewer than 64 force collisions in tests.
    """
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        _combine(hashes, column)
    if bits < 64:
        hashes &= np.uint64((2**bits - 1) << (64 - bits))
    return hashes


def spread(rows: int, seed: int) -> U64:
    """Return pseudo-random hashes for rows without a key, so that they are spread over all units."""
    hashes = np.full(rows, seed, np.uint64)
    _mix(hashes, np.arange(rows, dtype=np.uint64))
    return hashes


def _combine(hashes: U64, column: pa.Array) -> None:
    type = column.type
    if pa.types.is_string(type) or pa.types.is_binary(type):
        _, offsets, data = column.buffers()
        starts = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
        raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        _mix_bytes(hashes, starts, raw)
    elif pa.types.is_decimal128(type):
        words = np.frombuffer(column.buffers()[1], np.uint64, 2 * len(column), 16 * column.offset)
        _mix(hashes, np.ascontiguousarray(words[0::2]))
        _mix(hashes, np.ascontiguousarray(words[1::2]))
    else:
        _mix(hashes, _words(column))


def _words(column: pa.Array) -> U64:
    """Return the column's values as 64-bit words; NULLs get an arbitrary value."""
    type = column.type
    if pa.types.is_boolean(type):
        column = pc.cast(column, pa.uint8())
        type = column.type
    width = type.bit_width // 8
    values = np.frombuffer(column.buffers()[1], f"i{width}", len(column), width * column.offset)
    if pa.types.is_floating(type):
        floats = values.view(f"f{width}").astype(np.float64)
        floats += 0.0  # -0.0 becomes 0.0
        floats[np.isnan(floats)] = np.nan  # one canonical NaN
        return floats.view(np.uint64)
    return values.astype(np.int64).view(np.uint64)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@nb.njit(cache=True, inline="always")
def _mix_word(z: np.uint64) -> np.uint64:
    """Return a bijection of 64-bit words (the finalizer of SplitMix64)."""
    z = z + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@nb.njit(cache=True, nogil=True)
def _mix(hashes: U64, words: U64) -> None:
    for i in range(hashes.shape[0]):
        hashes[i] = _mix_word(hashes[i] ^ words[i])


@nb.njit(cache=True, nogil=True)
def _mix_bytes(hashes: U64, starts: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> None:
    for i in range(hashes.shape[0]):
        at, stop = starts[i], starts[i + 1]
        h = _mix_word(hashes[i] ^ np.uint64(stop - at))
        while at < stop:
            word, shift = np.uint64(0), np.uint64(0)
            while at < stop and shift < np.uint64(64):
                word |= np.uint64(data[at]) << shift
                shift += np.uint64(8)
                at += 1
            h = _mix_word(h ^ word)
        hashes[i] = h
