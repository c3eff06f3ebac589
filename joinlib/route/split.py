"""Rows of one input, in the source's columns, become the blocks of each unit.

A row's unit is the top bits of its key's hash. The rows are ordered by the hash's top bits (stable, so that two attempts
make the same bytes), which splits them by unit and makes every later walk through an index a walk forward.
"""

from collections.abc import Iterator
from functools import cache

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.route.config import HASH, InputPlan
from joinlib.route.hash import key_hash, spread

_ORDER_BITS = 14  # finer order no longer pays: a group's part of the index fits the first-level cache


@cache
def block_schema(plan: InputPlan) -> pa.Schema:
    """The columns of a block: the hash, then the stored columns."""
    return pa.schema([pa.field(HASH, pa.uint64()), *plan.schema])


def prepare(plan: InputPlan, rows: pa.RecordBatch, seed: int, hash_bits: int = 64) -> pa.RecordBatch:
    """Filters and projects rows of the source to block columns, hash included. `seed` spreads rows without a key."""

    def source(name: str) -> pa.Array:
        return rows.column(name.removeprefix(f"{plan.alias}."))

    if plan.filter is not None:
        keep = plan.filter.evaluate(source, rows.num_rows)
        # A NULL is no reason to keep a row; min() skips it.
        if pc.min(keep).as_py() is not True or keep.null_count:
            rows = rows.filter(_flat(keep))
    arrays = [_flat(c.value.evaluate(source, rows.num_rows)) for c in plan.columns]
    block = pa.record_batch(arrays, plan.schema)
    keys = [block.column(name) for name in plan.keys]
    nulls = any(k.null_count for k in keys)
    if nulls and not plan.keep_null_keys:
        block = block.filter(_has_key(keys))
        keys = [block.column(name) for name in plan.keys]
        nulls = False
    hashes = key_hash(keys, hash_bits) if keys else spread(block.num_rows, seed)
    if nulls:
        missing = ~_has_key(keys).to_numpy(zero_copy_only=False)
        hashes[missing] = spread(len(hashes), seed)[missing]
    return pa.record_batch([pa.array(hashes), *block.columns], block_schema(plan))


def split(
    block: pa.RecordBatch, units: int, homes: npt.NDArray[np.int64] | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each unit that gets rows, with its rows in the order of their hashes. O(rows). `homes`: units that a rule has chosen."""
    if not block.num_rows:
        return
    bits, hashes = units.bit_length() - 1, block.column(0).to_numpy()
    if homes is None:
        order, ends = _order(hashes, max(_ORDER_BITS, bits), bits)
    else:
        order, ends = _by_home(_order(hashes, _ORDER_BITS, 0)[0], homes, units)
    block = block.take(pa.array(order))
    start = 0
    for unit, end in enumerate(ends.tolist()):
        if end > start:
            yield unit, block.slice(start, end - start)
        start = end


@nb.njit(cache=True, nogil=True)
def _order(
    hashes: npt.NDArray[np.uint64], bits: int, unit_bits: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """A stable counting sort by the top `bits` bits; also where each unit's rows end."""
    down = np.uint64(64 - bits)
    places = np.zeros((1 << bits) + 1, np.int64)
    for i in range(hashes.shape[0]):
        places[(hashes[i] >> down) + np.uint64(1)] += 1
    for i in range(1 << bits):
        places[i + 1] += places[i]
    width = 1 << (bits - unit_bits)
    ends = places[width::width].copy()
    order = np.empty(hashes.shape[0], np.int32)
    for i in range(hashes.shape[0]):
        group = hashes[i] >> down
        order[places[group]] = i
        places[group] += 1
    return order, ends


@nb.njit(cache=True, nogil=True)
def _by_home(
    rows: npt.NDArray[np.int32], homes: npt.NDArray[np.int64], units: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """A stable counting sort of rows by their units; also where each unit's rows end."""
    places = np.zeros(units + 1, np.int64)
    for i in range(homes.shape[0]):
        places[homes[i] + 1] += 1
    for unit in range(units):
        places[unit + 1] += places[unit]
    ends = places[1:].copy()
    order = np.empty(rows.shape[0], np.int32)
    for row in rows:
        home = homes[row]
        order[places[home]] = row
        places[home] += 1
    return order, ends


def _has_key(keys: list[pa.Array]) -> pa.BooleanArray:
    valid = keys[0].is_valid()
    for key in keys[1:]:
        valid = pc.and_(valid, key.is_valid())
    return valid


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
