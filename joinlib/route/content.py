"""Rows as values: the hash of a whole row, and the sum of changes.

A *change* is a row and a weight, a whole number: +1 it came, -1 it went. Rows are equal as in SQL's IS NOT
DISTINCT FROM: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.apart import Failing, KeepFailed
from joinlib.arrays import I64, U64
from joinlib.model.inputs import HASH, WEIGHT
from joinlib.route import nested
from joinlib.route.hash import key_hash

Mask = npt.NDArray[np.bool_]


def content_hash(columns: Sequence[pa.Array], rows: int) -> U64:
    """Return the hash of each row over all columns, shape (rows,). Equal rows have equal hashes."""
    columns = [column for column in columns if not pa.types.is_null(column.type)]
    if not columns:
        return np.zeros(rows, np.uint64)
    return key_hash(
        [nested.hashed(c, content_hash) if pa.types.is_nested(c.type) else _filled(c) for c in columns]
    )


def values(rows: pa.RecordBatch) -> list[pa.Array]:
    """Return the columns that make up the rows: all but the key's hash and the weight."""
    return [rows.column(i) for i, name in enumerate(rows.schema.names) if name not in (HASH, WEIGHT)]


def same(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: int) -> Mask:
    """Return where row i of `left` equals row i of `right`, shape (rows,)."""
    mask = np.ones(rows, np.bool_)
    for a, b in zip(left, right, strict=True):
        if pa.types.is_null(a.type):
            continue
        if pa.types.is_nested(a.type):
            mask &= nested.same(a, b, same)
            continue
        equal = pc.fill_null(pc.equal(a, b), False)
        if pa.types.is_floating(a.type):
            equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(a), pc.is_nan(b)), False))
        if a.null_count and b.null_count:
            equal = pc.or_(equal, pc.and_(a.is_null(), b.is_null()))
        mask &= equal.to_numpy(zero_copy_only=False)
    return mask


def weights(rows: pa.RecordBatch) -> I64:
    """Return the weight of each row, shape (rows,); 1 on an edge that is append-only."""
    if rows.schema.names[-1:] != [WEIGHT]:
        return np.ones(rows.num_rows, np.int64)
    return rows.column(rows.num_columns - 1).to_numpy()


def weighted(rows: pa.RecordBatch, amounts: I64) -> pa.RecordBatch:
    """Return the rows with these weights as their last column, instead of those that they have."""
    plain = unweighted(rows)
    schema = plain.schema.append(pa.field(WEIGHT, pa.int64()))
    return pa.record_batch([*plain.columns, pa.array(amounts, pa.int64())], schema)


def weighing(failed: KeepFailed, amount: int) -> KeepFailed:
    """Return what takes rows that fail, and passes them on with this weight."""

    def take(rows: pa.RecordBatch, failing: Sequence[Failing]) -> None:
        failed(weighted(rows, np.full(rows.num_rows, amount, np.int64)), failing)

    return take


def unweighted(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows without their weights."""
    return rows.drop_columns([WEIGHT]) if rows.schema.names[-1:] == [WEIGHT] else rows


def consolidated(rows: pa.RecordBatch, ordered: bool = True, placed: bool = False) -> pa.RecordBatch:
    """Sum the weights of equal rows, and leave out rows whose sum is 0.

    Rows that are only inserted are returned as they are. O(rows), and O(d log d) for d rows that equal a
    deleted row. ordered: whether deletions come first; otherwise rows of which none are equal are not copied.
    placed: whether rows that lie at different hashes differ, as they may where no column is left of their key.
    """
    amounts = weights(rows)
    if not (amounts < 0).any():
        return rows
    columns, gone = values(rows), amounts < 0
    if placed and rows.schema.names[0] == HASH:
        columns = [rows.column(0), *columns]
    if rows.schema.names[0] == HASH:  # rows of other keys than those of deletions are not even hashed
        keys = rows.column(0).to_numpy()
        some = np.flatnonzero(_among(keys, keys[gone]))
        hashes = np.zeros(rows.num_rows, np.uint64)
        hashes[some] = content_hash([c.take(pa.array(some)) for c in columns], len(some))
    else:
        hashes = content_hash(columns, rows.num_rows)
        some = np.flatnonzero(_among(hashes, hashes[gone]))
    order = some[np.argsort(hashes[some], kind="stable")]
    starts = groups(columns, hashes, order)
    if not ordered and len(starts) == len(order):
        return rows
    sums = np.add.reduceat(amounts[order], starts)
    total = amounts.copy()
    total[some] = 0
    total[order[starts]] = sums
    deleted, inserted = np.flatnonzero(total < 0), np.flatnonzero(total > 0)
    kept = np.concatenate([deleted, inserted])
    return weighted(rows.take(pa.array(kept)), total[kept])


def _among(hashes: U64, wanted: U64) -> Mask:
    """Return which hashes are among `wanted`, and a few others; sorting them would take longer."""
    bits = max(len(wanted).bit_length() + 3, 10)
    seen, low = np.zeros(1 << bits, np.bool_), np.uint64((1 << bits) - 1)
    seen[wanted & low] = True
    return seen[hashes & low]


def groups(columns: Sequence[pa.Array], hashes: U64, order: I64) -> I64:
    """Return where each group of equal rows begins in `order`, which is sorted by hash.

    Rows of equal hashes that differ, which is rare, are brought together within `order` first; equal rows keep
    their order.
    """
    differs = ~_repeats(columns, hashes, order)
    begins = np.flatnonzero(np.append(True, hashes[order[1:]] != hashes[order[:-1]]))
    if np.count_nonzero(differs) + 1 == len(begins):
        return begins
    for start, stop in pairwise([*begins.tolist(), len(order)]):
        if differs[start : stop - 1].any():
            _regroup(columns, order, start, stop)
    return np.flatnonzero(np.append(True, ~_repeats(columns, hashes, order)))


def _repeats(columns: Sequence[pa.Array], hashes: U64, order: I64) -> Mask:
    """Return whether each row but the first equals the one before it, in `order`."""
    equal = hashes[order[1:]] == hashes[order[:-1]]
    pairs = np.flatnonzero(equal)
    one, two = pa.array(order[pairs]), pa.array(order[pairs + 1])
    equal[pairs] = same([c.take(one) for c in columns], [c.take(two) for c in columns], len(pairs))
    return equal


def _regroup(columns: Sequence[pa.Array], order: I64, start: int, stop: int) -> None:
    """Sort order[start:stop] in place, so that equal rows lie side by side."""
    left = order[start:stop].tolist()
    found: list[int] = []
    while left:
        first = pa.array([left[0]] * len(left))
        rows = pa.array(left)
        equal = same([c.take(first) for c in columns], [c.take(rows) for c in columns], len(left))
        found += [row for row, like in zip(left, equal, strict=True) if like]
        left = [row for row, like in zip(left, equal, strict=True) if not like]
    order[start:stop] = found


def _filled(column: pa.Array) -> pa.Array:
    """Return the column with NULL as a fixed value: what lies below a NULL is arbitrary."""
    return column.fill_null(_zero(column.type)) if column.null_count else column


def _zero(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar(b"").cast(kind)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(32))])[0]
