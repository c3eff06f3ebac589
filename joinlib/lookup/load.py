"""Measures a table and loads it whole, from a database or a folder."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.lookup.files import FilesTable
from joinlib.lookup.postgres import PostgresTable
from joinlib.lookup.task import TableTask
from joinlib.model.joins import Lookup
from joinlib.route.split import block_schema, prepare

if TYPE_CHECKING:
    from joinlib.spec.inputs import CacheMode

log = logging.getLogger("joinlib.lookup")
_MI = 1 << 20


def decided(task: TableTask) -> TableTask:
    """Check the table's size and columns, and decide for `auto` between full and incremental caching.

    A table is kept whole if it takes no more than the budget.

    Raises:
        SpecError: if `full` does not fit the budget, or the columns are not as declared. No rows are read.
    """
    caching = task.lookup.caching
    if isinstance(task.reader, PostgresTable):
        size = task.reader.check()
        if caching.mode == "auto":
            mode: CacheMode = "full" if size.bytes <= caching.budget else "incremental"
            lookup = replace(task.lookup, caching=replace(caching, mode=mode))
            return replace(task, lookup=lookup)
        if caching.mode == "full" and size.bytes > caching.budget:
            raise _too_large(task, f"has about {size.rows} rows, {size.bytes // _MI} MiB", incremental=True)
    if isinstance(task.reader, FilesTable):
        if task.reader.bytes > caching.budget:
            raise _too_large(task, f"has {task.reader.bytes // _MI} MiB of files", incremental=False)
        return replace(task, lookup=replace(task.lookup, caching=replace(caching, mode="full")))
    return task


def load(task: TableTask, hash_bits: int = 64) -> pa.RecordBatch:
    """Load all rows of the table as they are looked up: filtered, projected, hashed.

    Raises:
        SpecError: if they exceed the budget.
    """
    assert task.reader is not None
    table, blocks, size = task.lookup.table, [], 0
    for rows in task.reader.read_all():
        block = prepare(table, rows, 0, hash_bits)
        size += block.nbytes
        if size > task.lookup.caching.budget:
            known = isinstance(task.reader, PostgresTable)
            raise _too_large(task, f"is larger than {size // _MI} MiB", incremental=known)
        blocks.append(block)
    if not blocks:
        blocks = [pa.record_batch([pa.array([], f.type) for f in block_schema(table)], block_schema(table))]
    return searchable(task.lookup, pa.concat_batches(blocks))


def searchable(lookup: Lookup, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Drop rows whose range can hold nothing. Rows of a lookup without a key all get the same hash."""
    wanted = lookup.range
    if wanted is None:
        return rows
    if not lookup.table.keys:
        rows = rows.set_column(0, rows.schema.field(0), pa.array(np.zeros(rows.num_rows, np.uint64)))
    ends = [rows.column(name) for name in (wanted.low, wanted.high) if name is not None]
    for end in ends:
        if end.null_count:
            return searchable(lookup, rows.filter(end.is_valid()))
    if wanted.x and wanted.y and wanted.x.sql == wanted.y.sql:  # otherwise the ends bound different values
        inverted = pc.sum(pc.less(ends[1], ends[0])).as_py() or 0
        if inverted:
            place = f"inputs.{lookup.table.source}"
            log.warning(
                "%s: %d rows have ranges that end before they begin; they match nothing", place, inverted
            )
    return rows


def _too_large(task: TableTask, what: str, *, incremental: bool) -> SpecError:
    fix = (
        "raise budget, or write cache: incremental" if incremental else "raise budget, or read fewer columns"
    )
    budget = task.lookup.caching.budget // _MI
    return SpecError(
        f"inputs.{task.lookup.table.source}: the table {what}, more than its budget of {budget} MiB; {fix}"
    )
