"""What is kept of partitions, as segments of rows with weights (`aggregate.groups`).

    rows    $hash  columns  $weight               rows of partitions, or those that wait for the watermark
    near    $hash  columns  $weight               final rows that functions of later ones still read
    sums    $hash  partition  $w0.n ...  $weight  what final rows have been counted and summed to

Law: the sum of all segments is what is kept. A segment is added by each batch, with weight -1 for what goes.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.groups import Family, Groups, with_hashes
from joinlib.errors import InputError
from joinlib.expr import ref
from joinlib.model.grouping import Release
from joinlib.model.inputs import HASH, WEIGHT
from joinlib.model.over import Over
from joinlib.over.calls import carried
from joinlib.over.codes import Code, sort
from joinlib.route.content import Mask, consolidated, content_hash, groups, values, weights

_LOST = "a partition has lost more rows than it had: an input holds deletions of rows that never came; mend the input"


def rows_schema(over: Over) -> pa.Schema:
    """Return the schema of kept rows."""
    return pa.schema([(HASH, pa.uint64()), *over.columns, (WEIGHT, pa.int64())])


def sums_schema(over: Over) -> pa.Schema:
    """Return the schema of what partitions are counted and summed to."""
    kinds = dict(over.columns)
    keys = [(name, kinds[name]) for name in over.partition]
    sums = [column for call in over.calls for column in carried(call)]
    return pa.schema([(HASH, pa.uint64()), *keys, *sums, (WEIGHT, pa.int64())])


def families(over: Over) -> tuple[Family, ...]:
    """Return what is kept: rows; of a result that settles also near rows and sums."""
    if over.present is not None:
        begin, end = (_by(over, column) for column in over.present)
        return _family("rows", rows_schema(over), end), _family("waiting", rows_schema(over), begin)
    rows = _family("rows", rows_schema(over), release(over))
    if over.settles_by is None:
        return (rows,)
    return rows, _family("near", rows_schema(over), None), _family("sums", sums_schema(over), None)


def release(over: Over) -> Release | None:
    """Return by which column rows settle."""
    return _by(over, over.settles_by)


def _by(over: Over, column: str | None) -> Release | None:
    if column is None:
        return None
    kind = dict(over.columns)[column]
    return Release(column, column, kind, ref(column, kind), over.behind_us)


def _family(prefix: str, schema: pa.Schema, by: Release | None) -> Family:
    return Family(prefix, schema, lambda parts: summed(parts, schema), _by_hash, by)


def _by_hash(rows: pa.RecordBatch) -> pa.RecordBatch:
    hashes = rows.column(HASH).to_numpy()
    return rows.take(pa.array(sort([Code(hashes, 64)], len(hashes)).rows))


def stored(groups: Groups, sought: pa.RecordBatch) -> pa.RecordBatch:
    """Return the sum of what is stored of the partitions of `sought`, and possibly of others with equal hashes."""
    found = []
    if groups.segments and sought.num_rows:
        hashes = np.sort(sought.column(HASH).to_numpy())
        hashes = hashes[np.append(True, hashes[1:] != hashes[:-1])]
        found = [with_hashes(groups.read(segment), hashes) for segment in groups.segments]
    return summed(found, groups.family.schema)


def summed(parts: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return the sum of changes. O(rows), and more for those that equal a deleted row."""
    some = [part for part in parts if part.num_rows]
    if not some:
        return empty(schema)
    return consolidated(some[0] if len(some) == 1 else pa.concat_batches(some))


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return no rows."""
    return pa.RecordBatch.from_pylist([], schema)


def living(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return each row as often as it is there, without weights.

    Raises:
        InputError: if more rows went than came.
    """
    amounts, plain = weights(rows), rows.drop_columns([WEIGHT])
    if (amounts == 1).all():
        return plain
    if (amounts < 0).any():
        raise InputError(_LOST)
    return plain.take(pa.array(np.repeat(np.arange(len(amounts)), amounts)))


def inserted(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the changes that are insertions."""
    amounts = weights(rows)
    return rows if (amounts > 0).all() else rows.filter(pa.array(amounts > 0))


def remaining(rows: pa.RecordBatch, changes: pa.RecordBatch) -> Mask:
    """Return which rows deletions leave: each takes one row that is equal to it.

    Raises:
        InputError: if more rows go than there are.
    """
    stays, amounts = np.ones(rows.num_rows, np.bool_), weights(changes)
    if not (amounts < 0).any():
        return stays
    going = changes.filter(pa.array(amounts < 0))
    spots = np.flatnonzero(np.isin(rows.column(HASH).to_numpy(), going.column(HASH).to_numpy()))
    both = pa.concat_batches([going.drop_columns([WEIGHT]), rows.take(pa.array(spots))])
    columns = values(both)
    hashes = content_hash(columns, both.num_rows)
    order = np.argsort(hashes, kind="stable")  # deletions come first
    starts = groups(columns, hashes, order)
    given = np.zeros(both.num_rows, np.int64)
    given[: going.num_rows] = -weights(going)
    wanted = np.add.reduceat(given[order], starts)
    sizes = np.diff(np.append(starts, len(order)))
    ahead = np.add.reduceat((order < going.num_rows).astype(np.int64), starts)  # deletions among them
    if (wanted > sizes - ahead).any():
        raise InputError(_LOST)
    place = np.arange(len(order)) - np.repeat(starts + ahead, sizes)
    taken = (place >= 0) & (place < np.repeat(wanted, sizes))
    stays[spots[order[taken] - going.num_rows]] = False
    return stays


def changed(old: pa.RecordBatch, new: pa.RecordBatch, ordered: bool = True) -> pa.RecordBatch:
    """Return what changes rows without weights into others: deletions, then insertions."""
    parts = [_weighing(old, -1), _weighing(new, 1)]
    both = pa.concat_batches(parts) if old.num_rows and new.num_rows else parts[0 if old.num_rows else 1]
    return consolidated(both, ordered)


def _weighing(rows: pa.RecordBatch, weight: int) -> pa.RecordBatch:
    field = pa.field(WEIGHT, pa.int64())
    return rows.append_column(field, pc.cast(pa.repeat(weight, rows.num_rows), pa.int64()))
