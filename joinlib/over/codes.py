"""Columns as words in the same order, and rows sorted by words.

Law: a < b, a = b implies code(a) < code(b), code(a) = code(b) within one call; NULL is where it was asked to be.
NaN is the greatest value and equals itself; -0.0 equals 0.0. Lists, structs and maps, which only break ties, are in
the order of their hashes.

Words are as narrow as the values at hand allow, and several columns share a word, so that a radix sort has few
passes: partition and time of a million rows are one word of 50 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64, U64
from joinlib.expr import types as t
from joinlib.index.order import ordered
from joinlib.route.content import Mask, content_hash


@dataclass(frozen=True)
class Code:
    """Values below 2**bits in the order of a column."""

    values: U64
    bits: int


def number(values: I64) -> Code:
    """Return the code of integers that are not negative."""
    return Code(values.view(np.uint64), int(values.max(initial=0)).bit_length())


def code(column: pa.Array, descending: bool = False, nulls_first: bool = True) -> Code:
    """Return the code of a column's values. O(rows), and O(d log d) for d different texts."""
    words, known = _words(column), ~nulls(column)
    some = words if known.all() else words[known]
    if not len(some):
        return Code(np.zeros(len(column), np.uint64), 0)
    low, high = some.min(), some.max()
    span = high - low
    made = high - words if descending else words - low
    if len(some) == len(words):
        return Code(made, int(span).bit_length())
    if span == np.uint64(2**64 - 1):  # no place for one more value
        _, ranks = np.unique(made, return_inverse=True)
        made, span = ranks.astype(np.uint64), np.uint64(len(ranks))
    made = np.where(
        known, made + np.uint64(nulls_first), np.uint64(0) if nulls_first else span + np.uint64(1)
    )
    return Code(made, int(span + np.uint64(1)).bit_length())


def nulls(column: pa.Array) -> Mask:
    """Return a mask of the NULLs."""
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    return column.is_null().to_numpy(zero_copy_only=False)


def _words(column: pa.Array) -> U64:
    """Return words in the order of the values; those of NULLs are arbitrary."""
    kind = column.type
    if t.is_float(kind):
        return _flipped(ordered(_plain(column.cast(pa.float64()), 0.0)))
    if pa.types.is_boolean(kind):
        return _plain(column, False).astype(np.uint64)
    if t.is_decimal(kind) and kind.precision <= 18:
        pairs = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset)
        return _flipped(pairs[0::2])
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        width = kind.bit_width
        return _flipped(_plain(column.view(f"int{width}"), 0).astype(np.int64))
    return content_hash([column], len(column)) if t.is_nested(kind) else _ranks(column)


def _plain(column: pa.Array, zero: object) -> npt.NDArray[Any]:
    return (column.fill_null(zero) if column.null_count else column).to_numpy(zero_copy_only=False)


def _flipped(numbers: I64) -> U64:
    return (
        numbers.view(np.uint64) ^ np.uint64(1 << 63)
        if numbers.flags.c_contiguous
        else _flipped(numbers.copy())
    )


def _ranks(column: pa.Array) -> U64:
    """Return the rank of each value among the different values."""
    found = column.dictionary_encode()
    order = pc.sort_indices(found.dictionary).to_numpy()
    ranks = np.empty(len(order) + 1, np.uint64)
    ranks[order] = np.arange(len(order), dtype=np.uint64)
    ranks[-1] = 0
    return ranks[_plain(found.indices, len(order))]


@dataclass(frozen=True)
class Sorted:
    """Rows in an order."""

    rows: I64  # their numbers
    new: Mask  # whether each differs from the one before in what it was sorted by; true of the first


def sort(codes: Sequence[Code], rows: int) -> Sorted:
    """Sort rows by codes, the first one first; rows that are equal stay in their order. O(rows * bits)."""
    words = list(_packed(codes))
    order = np.arange(rows)
    for word in reversed(words):
        order = _radix(order, word.values, word.bits)
    new = np.zeros(rows, np.bool_)
    new[:1] = True
    for word in words:
        _mark(new, word.values, order)
    return Sorted(order, new)


def _packed(codes: Sequence[Code]) -> Sequence[Code]:
    """Join neighbours that fit one word."""
    made: list[Code] = []
    for one in codes:
        if not one.bits:
            continue
        if made and made[-1].bits + one.bits <= 64:
            last = made.pop()
            made.append(Code((last.values << np.uint64(one.bits)) | one.values, last.bits + one.bits))
        else:
            made.append(one)
    return made


@nb.njit(cache=True, nogil=True)
def _mark(new: Mask, values: U64, order: I64) -> None:
    for i in range(1, order.shape[0]):
        if values[order[i]] != values[order[i - 1]]:
            new[i] = True


@nb.njit(cache=True, nogil=True)
def _radix(order: I64, values: U64, bits: int) -> I64:
    """Sort `order` stably by the values of its rows, 11 bits at a time."""
    size, passes = order.shape[0], (bits + 10) // 11
    keys, moved, other = np.empty(size, np.uint64), np.empty(size, np.uint64), np.empty(size, np.int64)
    places = np.zeros((passes, 2049), np.int64)
    for i in range(size):
        value = values[order[i]]
        keys[i] = value
        for turn in range(passes):
            places[turn, (value & np.uint64(2047)) + np.uint64(1)] += 1
            value >>= np.uint64(11)
    for turn in range(passes):
        place, down = places[turn], np.uint64(11 * turn)
        if place.max() == size:
            continue
        for i in range(1, 2049):
            place[i] += place[i - 1]
        for i in range(size):
            digit = (keys[i] >> down) & np.uint64(2047)
            at = place[digit]
            moved[at], other[at] = keys[i], order[i]
            place[digit] = at + 1
        keys, moved = moved, keys
        order, other = other, order
    return order
