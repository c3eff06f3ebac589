"""What functions have counted and summed of the rows of a partition that have come out (`kept.sums_schema`), as their values.

Law: the value of a function that counts or sums is that of the last of these rows in the order of the function.

Ranks are told as how many rows they have counted; `dense_rank` counts rows that ORDER BY leaves equal once.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from joinlib.model.over import Over, OverCall
from joinlib.over.calls import RANKS, carried
from joinlib.over.compute import computed, layouts_of
from joinlib.over.layout import partitions
from joinlib.over.settled import begin


def counting(over: Over) -> tuple[OverCall, ...]:
    """Return the functions that go on from numbers."""
    return tuple(call for call in over.calls if carried(call))


def totals_schema(over: Over) -> pa.Schema:
    """Return the keys of partitions, and the values."""
    kinds = dict(over.columns)
    values = ((call.name, _kind(call)) for call in counting(over))
    return pa.schema([*((name, kinds[name]) for name in over.partition), *values])


def totals(over: Over, sums: pa.RecordBatch) -> pa.RecordBatch:
    """Return the values of each partition; NULL for a sum that does not fit its type. O(partitions).

    sums: a row for each partition.
    """
    asked, schema = replace(over, calls=counting(over)), totals_schema(over)
    rows = _without_values(over, sums)  # nothing is counted of them: functions stand where they begin
    parts, none = partitions(rows, asked), np.zeros(rows.num_rows, np.bool_)
    layouts = layouts_of(asked, rows, parts)
    found = computed(asked, rows, layouts, none, begin(sums, parts, parts), lenient=True)
    at = pa.array(found.layout.at)
    columns = [sums.column(name) for name in over.partition]
    for call in asked.calls:
        ranks = call.function in RANKS
        value = sums.column(f"{call.name}.n") if ranks else found.values[call.name].take(at)
        columns.append(value.cast(_kind(call)))
    return pa.record_batch(columns, schema)


def _kind(call: OverCall) -> pa.DataType:
    return pa.int64() if call.function in RANKS else call.type


def _without_values(over: Over, sums: pa.RecordBatch) -> pa.RecordBatch:
    """Return a row for each partition that has its keys and nothing else."""
    known = {*over.partition}
    columns = (
        sums.column(name) if name in known else pa.nulls(sums.num_rows, kind) for name, kind in over.columns
    )
    return pa.record_batch([sums.column(0), *columns], pa.schema([sums.schema.field(0), *over.columns]))
