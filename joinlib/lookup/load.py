"""Measures a table and loads it whole, from a database or a folder."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.lookup.files import FilesTable
from joinlib.lookup.postgres import PostgresTable
from joinlib.lookup.spill import Spill
from joinlib.lookup.task import TableTask
from joinlib.lookup.version import Part
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Lookup
from joinlib.route.split import block_schema, prepare

if TYPE_CHECKING:
    from joinlib.spec.inputs import CacheMode

log = logging.getLogger("joinlib.lookup")
_MI = 1 << 20
_FLUSH = 4  # a table that has exceeded its budget goes to the disk in pieces of this fraction of it


class Loaded(NamedTuple):
    """A table that was read."""

    rows: int  # that were read
    parts: Sequence[Part]  # one, or one for each of so many ranges of hashes


def decided(task: TableTask) -> TableTask:
    """Check the table's columns, and decide for `auto` between full and incremental caching, and whether that is scarce.

    A table of a database is kept whole if it takes no more than the budget; one of files always is.

    Raises:
        SpecError: if a table that is searched by ranges alone does not fit the budget, or the columns are not as
            declared. No rows are read.
    """
    caching = task.lookup.caching
    if isinstance(task.reader, PostgresTable):
        size = task.reader.check()
        fits = size.bytes <= caching.budget
        auto: CacheMode = "full" if fits else "incremental"
        mode = auto if caching.mode == "auto" else caching.mode
        if mode == "full" and not fits and not task.lookup.table.keys:
            raise _too_large(task, f"has about {size.rows} rows, {size.bytes // _MI} MiB")
        scarce = mode == "incremental" and not fits if caching.scarce is None else caching.scarce
        return replace(task, lookup=replace(task.lookup, caching=replace(caching, mode=mode, scarce=scarce)))
    if isinstance(task.reader, FilesTable):
        if task.reader.bytes > caching.budget and not task.lookup.table.keys:
            raise _too_large(task, f"has {task.reader.bytes // _MI} MiB of files")
        return replace(task, lookup=replace(task.lookup, caching=replace(caching, mode="full")))
    return task


@contextmanager
def loaded(task: TableTask, aside: Path, hash_bits: int = 64) -> Iterator[Loaded]:
    """Load all rows of the table as they are looked up: filtered, projected, hashed.

    aside: a folder that is not there. Rows that exceed the budget are in it while the context lasts.

    Raises:
        SpecError: if a table that is searched by ranges alone exceeds the budget.
        NotReady: The disk is full.
    """
    assert task.reader is not None
    table, budget = task.lookup.table, task.lookup.caching.budget
    blocks, size, rows = [_none(table)], 0, 0
    with ExitStack() as stack:
        spill: Spill | None = None
        for read in task.reader.read_all():
            block = prepare(table, read, 0, hash_bits)
            blocks.append(block)
            size, rows = size + block.nbytes, rows + block.num_rows
            if size <= (budget if spill is None else budget // _FLUSH):
                continue
            if not table.keys:
                raise _too_large(task, f"is larger than {size // _MI} MiB")
            if spill is None:
                stack.callback(shutil.rmtree, aside, ignore_errors=True)
                spill = Spill(aside, block_schema(table))
            spill.add(blocks)
            blocks, size = [_none(table)], 0
        if spill is None:
            whole = searchable(task.lookup, pa.concat_batches(blocks))
            yield Loaded(whole.num_rows, [lambda: whole])
            return
        spill.add(blocks)
        yield Loaded(rows, [partial(_part, task.lookup, read) for read in spill.complete()])


def _none(table: InputPlan) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], block_schema(table))


def _part(lookup: Lookup, read: Part) -> pa.RecordBatch:
    return searchable(lookup, read())


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


def _too_large(task: TableTask, what: str) -> SpecError:
    budget = task.lookup.caching.budget // _MI
    return SpecError(
        f"inputs.{task.lookup.table.source}: the table {what}, more than its budget of {budget} MiB, and a join by ranges"
        " alone looks through all of it; raise budget, read fewer columns, or join it by an equality too"
    )
