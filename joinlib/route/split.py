"""Splits rows of one input, in the source's columns, into blocks for each unit.

A row's unit is given by the top bits of its key's hash. The rows are sorted by the hash's top bits (stably,
so that two attempts make the same bytes). This splits them by unit and makes every later walk through an
index sequential.
"""

from collections.abc import Iterator
from functools import cache

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.model.inputs import HASH, WEIGHT, InputPlan
from joinlib.route.content import content_hash, values
from joinlib.route.hash import key_hash, spread
from joinlib.route.maps import columns_of, flat, mapped

_ORDER_BITS = 14  # more bits do not pay: a group's part of the index fits the first-level cache


@cache
def block_schema(plan: InputPlan) -> pa.Schema:
    """Return the columns of a block: the hash, the stored columns, and the weight if the rows are changes."""
    weight = [pa.field(WEIGHT, pa.int64())] if plan.changes else []
    return pa.schema([pa.field(HASH, pa.uint64()), *plan.schema, *weight])


def prepare(plan: InputPlan, rows: pa.RecordBatch, seed: int, hash_bits: int = 64) -> pa.RecordBatch:
    """Filter and project rows of the source to block columns, including the hash.

    seed: spreads rows without a key; where rows are changes their content does, so that a deletion goes where
    its row went. hash_bits: see `key_hash`.
    """
    rows = _passing(plan, rows)
    arrays = _stored(plan, rows)
    if plan.copies:
        return _copied(arrays, rows.num_rows, plan)
    block = pa.record_batch(arrays, block_schema(plan).remove(0))
    keys = [block.column(name) for name in plan.keys]
    if plan.null_is_value:
        return pa.record_batch(
            [pa.array(content_hash(keys, block.num_rows)), *block.columns], block_schema(plan)
        )
    nulls = any(k.null_count for k in keys)
    if nulls and not plan.keep_null_keys:
        block = block.filter(_has_key(keys))
        keys = [block.column(name) for name in plan.keys]
        nulls = False
    hashes = key_hash(keys, hash_bits) if keys else _spread(plan, block, seed)
    if nulls:
        missing = ~_has_key(keys).to_numpy(zero_copy_only=False)
        hashes[missing] = _spread(plan, block, seed)[missing]
    if plan.apart is not None:
        hashes[_true(plan.apart.evaluate(columns_of(plan, rows), rows.num_rows))] = 0
    return pa.record_batch([pa.array(hashes), *block.columns], block_schema(plan))


def projected(plan: InputPlan, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Filter and project rows of the source to the stored columns, without hashes; weights come last."""
    rows = _passing(plan, rows)
    return pa.record_batch(_stored(plan, rows), block_schema(plan).remove(0))


def _passing(plan: InputPlan, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that pass the filter, after the maps below."""
    rows = mapped(rows, plan.maps)
    if plan.filter is not None:
        keep = plan.filter.evaluate(columns_of(plan, rows), rows.num_rows)
        # Rows for which the filter is NULL are dropped too, but min() skips NULL.
        if pc.min(keep).as_py() is not True or keep.null_count:
            rows = rows.filter(flat(keep))
    return rows


def _stored(plan: InputPlan, rows: pa.RecordBatch) -> list[pa.Array]:
    arrays = [flat(c.value.evaluate(columns_of(plan, rows), rows.num_rows)) for c in plan.columns]
    if not plan.changes:
        return arrays
    append = rows.schema.names[-1:] != [WEIGHT]  # rows that only come, beside others that change
    return [*arrays, pa.array(np.ones(rows.num_rows, np.int64)) if append else flat(rows.column(WEIGHT))]


def _spread(plan: InputPlan, block: pa.RecordBatch, seed: int) -> npt.NDArray[np.uint64]:
    """Return hashes for rows without a key."""
    rows = block.num_rows
    return content_hash(values(block), rows) if plan.changes else spread(rows, seed)


def split(
    block: pa.RecordBatch, units: int, homes: npt.NDArray[np.int64] | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each unit that gets rows, with its rows in the order of their hashes. O(rows).

    homes: the unit of each row, if a rule has chosen it; shape (rows,).
    """
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
    """Sort stably by the top `bits` bits (counting sort); return the order and each unit's end in it."""
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
    """Sort rows stably by unit (counting sort); return the order and each unit's end in it."""
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


def _copied(arrays: list[pa.Array], rows: int, plan: InputPlan) -> pa.RecordBatch:
    """Return every row once for each of the first `plan.copies` units, with a hash of that unit."""
    bits = plan.copies.bit_length() - 1
    hashes = np.repeat(np.arange(plan.copies, dtype=np.uint64), rows)
    if bits:
        hashes <<= np.uint64(64 - bits)
    each = pa.array(np.tile(np.arange(rows), plan.copies))
    return pa.record_batch([pa.array(hashes), *(array.take(each) for array in arrays)], block_schema(plan))


def _true(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return flat(pc.fill_null(column, False)).to_numpy(zero_copy_only=False)


def _has_key(keys: list[pa.Array]) -> pa.BooleanArray:
    valid = keys[0].is_valid()
    for key in keys[1:]:
        valid = pc.and_(valid, key.is_valid())
    return valid
