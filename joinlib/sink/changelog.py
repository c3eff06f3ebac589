"""Changes as rows that a reader understands: what a result row with a weight is in a file, a topic or a table.

    rows     each row with the word for what happened to it, `_change_type`, and the number of its batch, `_batch`
    latest   at most one row for each key: the one that is there now (weight 1), or the one that went (-1)

        a -1                a delete   7              b delete  7        key: the first column of a row
        b -1      rows      b delete   7    with a    a update_preimage  7     (a -1, a +1: the row of key a
        a +1   ────────►    a insert   7    key       a update_postimage 7      has changed)

What comes in is a batch of result rows that ends with the column `$weight`, or without it if all are new. Rows
of the same key are paired if they are in one batch, so it has to hold all rows of a unit.

Law: the sum of the rows that come out, with +1 for insert and update_postimage and -1 for the others, is the
sum of those that came in. The order is a function of the rows: what went, what changed, what came.
Cost: a pass over the rows; with a key also a dictionary of its columns and a sort.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.model.changelog import BATCH, CHANGE_TYPE, DELETE, INSERT, POSTIMAGE, PREIMAGE
from joinlib.model.inputs import WEIGHT

_WORDS = pa.array([INSERT, DELETE, PREIMAGE, POSTIMAGE])
_ADDED, _GONE, _OLD, _NEW = range(4)  # places in _WORDS
Indexes = npt.NDArray[np.int64]


def described(schema: pa.Schema, *, numbered: bool = True) -> pa.Schema:
    """Return the schema of `rows`, for results of this schema."""
    more = [pa.field(CHANGE_TYPE, pa.string()), *([pa.field(BATCH, pa.int64())] if numbered else [])]
    return pa.schema([*schema, *more])


def rows(batch: pa.RecordBatch, key: Sequence[str] = (), number: int | None = None) -> pa.RecordBatch:
    """Return the rows with their `_change_type`, and with `_batch` if it has a number.

    A delete and an insert of the same key become an update: the row before it, and behind that the row after
    it. A row of weight n appears n times.
    """
    plain, weights = split(batch)
    if weights is None:
        order, words = None, np.full(batch.num_rows, _ADDED, np.int8)
    else:
        order, words = _described(plain, weights, key)
        plain = plain.take(pa.array(order))
    columns = [*plain.columns, _WORDS.take(pa.array(words))]
    if number is not None:
        columns.append(pa.repeat(pa.scalar(number, pa.int64()), len(words)))
    return pa.record_batch(columns, described(plain.schema, numbered=number is not None))


def latest(batch: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    """Return one row for each key, with its weight: 1 is the key's row from now on, -1 is of a key that is gone.

    Raises:
        SpecError: A key has several rows at once.
    """
    plain, weights = split(batch)
    if weights is None:
        weights = np.ones(batch.num_rows, np.int64)
    codes = _codes(plain, key)
    _check(codes, weights, key)
    alive = np.zeros(len(codes), np.bool_)
    alive[codes[weights > 0]] = True
    order = np.concatenate([np.flatnonzero(~alive[codes]), np.flatnonzero(weights > 0)])
    kept = plain.take(pa.array(order))
    return pa.record_batch(
        [*kept.columns, pa.array(weights[order])], pa.schema([*kept.schema, pa.field(WEIGHT, pa.int64())])
    )


def _check(codes: Indexes, weights: Indexes, key: Sequence[str]) -> None:
    """Check that no key has several rows at once, before the batch or after it."""
    for mine in (weights > 0, weights < 0):
        if np.any(np.abs(weights[mine]) > 1) or _repeat(codes[mine]):
            raise SpecError(
                f"output.key: the result has several rows with the same {', '.join(key)}, and mode upsert keeps one of"
                " them; name all columns that tell its rows apart, or write mode: changelog"
            )


def split(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Indexes | None]:
    """Return the rows without their weights, and the weights; None if all rows are new."""
    if not batch.num_columns or batch.schema.names[-1] != WEIGHT:
        return batch, None
    plain = batch.select(range(batch.num_columns - 1))
    return plain, batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)


def _described(plain: pa.RecordBatch, weights: Indexes, key: Sequence[str]) -> tuple[Indexes, Indexes]:
    """Return the order of the rows that come out, and a word for each of them."""
    all_rows = np.arange(len(weights))
    gone = np.repeat(all_rows[weights < 0], -weights[weights < 0])
    new = np.repeat(all_rows[weights > 0], weights[weights > 0])
    at_gone, at_new = _pairs(plain, gone, new, key) if key else (gone[:0], gone[:0])
    pairs = np.stack([gone[at_gone], new[at_new]], axis=1).ravel()
    gone, new = np.delete(gone, at_gone), np.delete(new, at_new)
    words = np.concatenate(
        [
            np.full(len(gone), _GONE, np.int8),
            np.tile(np.array([_OLD, _NEW], np.int8), len(at_gone)),
            np.full(len(new), _ADDED, np.int8),
        ]
    )
    return np.concatenate([gone, pairs, new]), words


def _pairs(plain: pa.RecordBatch, gone: Indexes, new: Indexes, key: Sequence[str]) -> tuple[Indexes, Indexes]:
    """Return the places in `gone` and in `new` of the rows that belong together: the nth of each key."""
    codes = _codes(plain, key)
    _, at_gone, at_new = np.intersect1d(
        _numbered(codes[gone], len(codes)),
        _numbered(codes[new], len(codes)),
        assume_unique=True,
        return_indices=True,
    )
    order = np.argsort(at_gone, kind="stable")
    return at_gone[order], at_new[order]


def _numbered(codes: Indexes, most: int) -> Indexes:
    """Make codes unique: the nth of the same code gets a number that is the same for every such n."""
    if not _repeat(codes):
        return codes
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])[: len(codes)]
    runs = np.diff(np.r_[starts, len(codes)])
    nth = np.empty(len(codes), np.int64)
    nth[order] = np.arange(len(codes)) - np.repeat(starts, runs)
    return nth * max(most, 1) + codes


def _codes(plain: pa.RecordBatch, key: Sequence[str]) -> Indexes:
    """Return a number below the number of rows for each row; equal keys have equal ones, and NULL equals NULL."""
    codes = np.zeros(plain.num_rows, np.int64)
    for name in key:
        column = plain.column(name)
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 is 0.0
        own = column.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
        if name == key[0]:
            codes = own
        else:
            _, codes = np.unique(codes * max(plain.num_rows, 1) + own, return_inverse=True)
    return codes


def _repeat(codes: Indexes) -> bool:
    return bool(len(codes) and np.bincount(codes).max() > 1)
