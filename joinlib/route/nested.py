"""ARRAYs, STRUCTs and MAPs as values: which are equal, and a hash that is equal for equal ones.

Law: equal part by part, NULL parts being equal; entries of a MAP in the order in which they came.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I64, U64

Mask: TypeAlias = npt.NDArray[np.bool_]
Hash: TypeAlias = Callable[[Sequence[pa.Array], int], U64]
Same: TypeAlias = Callable[[Sequence[pa.Array], Sequence[pa.Array], int], Any]


def hashed(column: pa.Array, hash_of: Hash) -> pa.Array:
    """Return a number for each value; equal values have equal numbers."""
    known = column.is_valid()
    if pa.types.is_struct(column.type):
        fields = column.flatten()
        return pa.array(hash_of([known, *(f.is_valid() for f in fields), *fields], len(column)))
    sizes, parts = _elements(column)
    elements = hash_of([part.is_valid() for part in parts] + parts, len(parts[0]))
    starts = np.append(0, np.cumsum(sizes))
    return pa.array(_folded(elements, starts, known.to_numpy(zero_copy_only=False)))


def same(left: pa.Array, right: pa.Array, same_of: Same) -> Mask:
    """Return where two values are equal; NULL equals NULL."""
    equal = pc.equal(left.is_valid(), right.is_valid()).to_numpy(zero_copy_only=False).copy()
    if pa.types.is_struct(left.type):
        parts = same_of(left.flatten(), right.flatten(), len(left))
        return equal & (parts | left.is_null().to_numpy(zero_copy_only=False))
    sizes = [_sizes(side) for side in (left, right)]
    equal &= sizes[0] == sizes[1]
    rows = np.flatnonzero(equal)
    ones, others = (_elements(side.take(pa.array(rows)))[1] for side in (left, right))
    alike = same_of(ones, others, len(ones[0]))
    owner = np.repeat(rows, sizes[0][rows])
    equal[owner[~alike]] = False
    return equal


def _sizes(column: pa.Array) -> I64:
    if pa.types.is_map(column.type):
        known = column.is_valid().to_numpy(zero_copy_only=False)
        return np.where(known, np.diff(column.offsets.to_numpy()), 0).astype(np.int64)
    return pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _elements(column: pa.Array) -> tuple[I64, list[pa.Array]]:
    """Return how many elements each value has, and all elements: keys and items of a MAP."""
    sizes = _sizes(column)
    if not pa.types.is_map(column.type):
        return sizes, [column.flatten()]
    first = np.repeat(column.offsets.to_numpy()[:-1] - (np.cumsum(sizes) - sizes), sizes)
    at = pa.array(first + np.arange(int(sizes.sum())))
    return sizes, [column.keys.take(at), column.items.take(at)]


@nb.njit(cache=True, nogil=True)
def _folded(elements: U64, starts: I64, known: Mask) -> U64:
    found = np.zeros(starts.shape[0] - 1, np.uint64)
    for row in range(found.shape[0]):
        value = np.uint64(starts[row + 1] - starts[row]) + np.uint64(1 if known[row] else 0)
        for at in range(starts[row], starts[row + 1]):
            value = (value ^ elements[at]) * np.uint64(0x9E3779B97F4A7C15)
            value ^= value >> np.uint64(29)
        found[row] = value
    return found
