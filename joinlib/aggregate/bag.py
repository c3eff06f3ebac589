"""The rows of bags (`model.bags`): values with weights.

    $hash  $g0 $g1 ...  $x0 ...  $weight        a row for each group and value, sorted by all before the weight

Law: consolidated(bags of any division of the rows) is the bag of all rows; a value that came as often as it went
leaves nothing. So the size of a bag follows the values that live.

Doubles are kept as the integers of `index.order`, so equal values have equal bits; a limb's code is its value.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.aggregate.exact import parts
from joinlib.aggregate.keys import alike, differ, hashes
from joinlib.arrays import I64
from joinlib.expr import types as t
from joinlib.index.order import ordered
from joinlib.model.bags import Bag
from joinlib.model.grouping import Grouping
from joinlib.model.inputs import HASH, WEIGHT
from joinlib.route.content import weights


@cache
def schema(grouping: Grouping, bag: Bag) -> pa.Schema:
    """Return the schema of a bag's rows."""
    keys = [(k.name, k.type) for k in grouping.keys]
    return pa.schema([(HASH, pa.uint64()), *keys, *bag.stored, (WEIGHT, pa.int64())])


def added(rows: pa.RecordBatch, grouping: Grouping, bag: Bag) -> pa.RecordBatch:
    """Return what these rows (columns $g, $x, $weight) add to the bag. O(rows log rows)."""
    values = [rows.column(name) for name, _ in bag.columns]
    known = np.ones(rows.num_rows, bool)
    for value in values[: bag.required]:
        known &= value.is_valid().to_numpy(zero_copy_only=False)
    at, counts = np.flatnonzero(known), weights(rows)
    if bag.kind in ("sums", "squares"):
        numbers = doubles(values[0].take(at)).to_numpy(zero_copy_only=False)
        which, codes, counts = parts(numbers, counts[at], bag.kind == "squares")
        at, columns = at[which], [pa.array(codes.astype(np.int32))]
    else:
        counts, columns = counts[at], [comparable(value.take(at)) for value in values]
    keys = [alike(rows.column(k.name)).take(at) for k in grouping.keys]
    made = [hashes(keys, len(at)), *keys, *columns, pa.array(counts)]
    return merged([pa.record_batch(made, schema(grouping, bag))], grouping, bag)


def merged(given: Sequence[pa.RecordBatch], grouping: Grouping, bag: Bag) -> pa.RecordBatch:
    """Return the sum of these rows of a bag, sorted. O(rows log rows)."""
    rows = consolidated(given, schema(grouping, bag))
    if bag.end == "all" or not rows.num_rows:
        return rows
    new = starts(rows, [HASH, *(k.name for k in grouping.keys)])
    return rows.filter(pa.array(new if bag.end == "first" else np.append(new[1:], True)))


def consolidated(given: Sequence[pa.RecordBatch], kind: pa.Schema) -> pa.RecordBatch:
    """Return the rows sorted by all columns but the last one, which is summed; those with sum 0 are left out."""
    rows = pa.concat_batches([*given, pa.RecordBatch.from_pylist([], kind)])
    if not rows.num_rows:
        return rows
    names = kind.names[:-1]
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in names])
    rows = rows.take(order)
    at = np.flatnonzero(starts(rows, names))
    total = np.add.reduceat(np.asarray(rows.column(WEIGHT)), at)
    rows = rows.take(pa.array(at[total != 0]))
    return rows.set_column(rows.num_columns - 1, WEIGHT, pa.array(total[total != 0]))


def weights_in(stored: Sequence[pa.RecordBatch], sought: pa.RecordBatch) -> I64:
    """Return what these stored rows weigh together, for each of the sought rows, which are sorted."""
    both = pa.concat_batches([sought, *stored])
    if not sought.num_rows:
        return np.zeros(0, np.int64)
    names = both.schema.names[:-1]
    order = pc.sort_indices(both, sort_keys=[(name, "ascending") for name in names])
    mine = (np.arange(both.num_rows) < sought.num_rows)[order]
    weight = np.asarray(both.column(WEIGHT))[order]
    at = np.flatnonzero(starts(both.take(order), names))
    return np.add.reduceat(np.where(mine, 0, weight), at)[np.logical_or.reduceat(mine, at)]


def starts(rows: pa.RecordBatch, names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the rows that differ in one of these columns from the row before."""
    new = np.zeros(rows.num_rows, bool)
    new[:1] = True
    for name in names:
        column = rows.column(name)
        new[1:] |= differ(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return new


def comparable(value: pa.Array) -> pa.Array:
    """Return doubles as integers in the same order, equal where they are equal; other values as they are."""
    if not t.is_float(value.type):
        return value
    numbers = pc.fill_null(value.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    return pa.array(ordered(numbers), mask=value.is_null().to_numpy(zero_copy_only=False))


def doubles(value: pa.Array) -> pa.Array:
    """Return numbers as doubles, the nearest ones."""
    return value.cast(pa.float64(), safe=False)
