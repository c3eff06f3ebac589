"""Measures a table and loads it whole, from a database or a folder."""

import logging
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.lookup.files import FilesTable
from joinlib.lookup.postgres import PostgresTable
from joinlib.lookup.spill import PARTS, KeylessSpill, Spill
from joinlib.lookup.task import TableTask
from joinlib.lookup.version import Part
from joinlib.model.joins import Lookup
from joinlib.route.split import block_schema, prepare, split

if TYPE_CHECKING:
    from joinlib.spec.inputs import CacheMode

log = logging.getLogger("joinlib.lookup")
T = TypeVar("T")
_AHEAD = 4  # blocks that are split, or wait for it
_FLUSH = 4  # a table that has exceeded its budget goes to the disk in pieces of this fraction of it


class Loaded(NamedTuple):
    """A table that was read.

    Attributes:
        rows: How many were read.
        parts: One for each of so many equal ranges of hashes; without a key each has any rows.
        whole: Whether they are kept as one, since they fit the budget.
    """

    rows: int
    parts: Sequence[Part]
    whole: bool


def decided(task: TableTask) -> TableTask:
    """Check the table's columns, and decide for `auto` between full and incremental caching, and whether that is scarce.

    A table of a database is kept whole if it fits the budget, or is searched by ranges alone; one of files always is.

    Raises:
        SpecError: if the columns are not as declared. No rows are read.
    """
    caching = task.lookup.caching
    if isinstance(task.reader, PostgresTable):
        size = task.reader.check()
        fits = size.bytes <= caching.budget
        auto: CacheMode = "full" if fits or not task.lookup.table.keys else "incremental"
        mode = auto if caching.mode == "auto" else caching.mode
        scarce = mode == "incremental" and not fits if caching.scarce is None else caching.scarce
        return replace(task, lookup=replace(task.lookup, caching=replace(caching, mode=mode, scarce=scarce)))
    if isinstance(task.reader, FilesTable):
        return replace(task, lookup=replace(task.lookup, caching=replace(caching, mode="full")))
    return task


@contextmanager
def loaded(task: TableTask, aside: Path, hash_bits: int = 64) -> Iterator[Loaded]:
    """Load all rows of the table as they are looked up: filtered, projected, hashed.

    aside: a folder that is not there. Rows that exceed the budget are in it while the context lasts.

    Raises:
        NotReady: The disk is full.
    """
    assert task.reader is not None
    table, budget = task.lookup.table, task.lookup.caching.budget
    ranges = PARTS if table.keys else 1  # without a key all rows are looked through
    kept, size, rows = _nothing(ranges), 0, 0
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(os.sched_getaffinity(0))))
        spill: Spill | KeylessSpill | None = None
        blocks = (prepare(table, read, 0, hash_bits) for read in task.reader.read_all())
        for shares in _ahead(pool, partial(_split, ranges), blocks):
            for number, share in shares:
                kept[number].append(share)
                size, rows = size + share.nbytes, rows + share.num_rows
            if size <= (budget if spill is None else budget // _FLUSH):
                continue
            if spill is None:
                stack.callback(shutil.rmtree, aside, ignore_errors=True)
                spill = (Spill if table.keys else KeylessSpill)(aside, block_schema(table))
            spill.add(kept)
            kept, size = _nothing(ranges), 0
        if spill is not None:
            spill.add(kept)
        read = spill.complete() if spill else [partial(_joined, block_schema(table), some) for some in kept]
        yield Loaded(rows, [partial(_part, task.lookup, one) for one in read], spill is None)


def _ahead(
    pool: ThreadPoolExecutor, call: Callable[[pa.RecordBatch], T], blocks: Iterator[pa.RecordBatch]
) -> Iterator[T]:
    """Yield what the calls return, in order; a few are made while the blocks behind them are read."""
    begun: deque[Future[T]] = deque()
    for block in blocks:
        begun.append(pool.submit(call, block))
        if len(begun) > _AHEAD:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def _split(ranges: int, block: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    """Return the rows of each range of hashes that has some; of a single one as they come, since order costs a sort."""
    if ranges == 1:
        return [(0, block)] if block.num_rows else []
    return list(split(block, ranges))


def _nothing(ranges: int) -> list[list[pa.RecordBatch]]:
    return [[] for _ in range(ranges)]


def _joined(schema: pa.Schema, blocks: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of blocks, which are let go."""
    rows = pa.concat_batches(blocks) if blocks else pa.RecordBatch.from_pylist([], schema)
    blocks.clear()
    return rows


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
