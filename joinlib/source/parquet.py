"""Cuts and reads Parquet files. A slice is a range of rows inside one row group.

A row group is decoded as a whole (22 M rows/s for narrow rows). So adjacent slices of one group are
read together, and a group of several slices stays decoded for the next call; a process keeps two of
them. Processes that read pieces of one slice decode its group each. Groups beyond WHOLE_BYTES are
streamed instead: memory stays bounded, but each read also decodes the rows before its slice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.source.fit import Fit, check_types, fitted
from joinlib.source.fresh import Unreadable, check_fresh
from joinlib.source.slices import BATCH_ROWS, FileRange, Slice
from joinlib.worker import Keep, current

WHOLE_BYTES = 64 << 20
_Group = tuple[str, int, int, int, tuple[str, ...]]  # path, size, time, row group, columns


def cut(path: Path, schema: pa.Schema) -> list[FileRange]:
    """Cut the file into ranges. Reads the footer only.

    Raises:
        Unreadable: The file is not a complete Parquet file.
        InputError: Its columns do not fit the schema.
    """
    try:
        with _opened(str(path)) as file:
            check_types(str(path), file.schema_arrow, schema)
            groups = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    except (pa.ArrowException, OSError) as e:
        raise Unreadable(f"not a whole Parquet file ({_first_line(e)})") from e
    return [
        FileRange(group, start, stop := min(start + BATCH_ROWS, rows), stop - start)
        for group, rows in enumerate(groups)
        for start in range(0, rows, BATCH_ROWS)
    ]


def pieces(slice: Slice, count: int) -> list[Slice]:
    """Cut a slice into at most so many parts of equal size."""
    ends = [slice.start + (slice.stop - slice.start) * n // count for n in range(count + 1)]
    return [
        replace(slice, rows=stop - start, weight=stop - start, start=start, stop=stop)
        for start, stop in pairwise(ends)
        if start < stop
    ]


def read_many(
    slices: Sequence[Slice], columns: Sequence[str], schema: pa.Schema, fit: Fit = fitted
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of slices in order, each batch with its place.

    Adjacent slices of a row group are decoded together. fit: makes rows of the declared types.
    """
    want = pa.schema([schema.field(c) for c in columns])
    physical = tuple(columns) or (schema.names[0],)  # one column is needed for the number of rows
    for merged in _merged(slices):
        check_fresh(merged)
        place = f"{merged.path}, rows {merged.start} to {merged.stop} of row group {merged.group}"
        try:
            for batch in _rows(merged, physical):
                yield place, fit(place, batch, want)
        except (pa.ArrowException, OSError) as e:
            raise InputError(
                f"{place}: damaged ({_first_line(e)}); write the file again under a new name"
            ) from e


def numbers(slice: Slice) -> I64:
    """Return the numbers in the file, from 1, of a slice's rows."""
    with _opened(slice.path) as file:
        before = sum(file.metadata.row_group(g).num_rows for g in range(slice.group))
    return np.arange(before + slice.start + 1, before + slice.stop + 1)


def _merged(slices: Sequence[Slice]) -> Iterator[Slice]:
    """Merge adjacent slices: [g0 0-4, g0 4-8, g1 0-4] -> [g0 0-8, g1 0-4]."""
    pending: Slice | None = None
    for slice in slices:
        if pending and (pending.path, pending.group, pending.stop) == (slice.path, slice.group, slice.start):
            pending = replace(pending, rows=None, weight=pending.weight + slice.weight, stop=slice.stop)
            continue
        if pending:
            yield pending
        pending = slice
    if pending:
        yield pending


def _rows(slice: Slice, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with _opened(slice.path) as file:
        group = file.metadata.row_group(slice.group)
        several = group.num_rows > BATCH_ROWS
    if several and _bytes(group, columns) > WHOLE_BYTES:
        yield from _streamed(slice, columns)
        return
    which = slice.path, slice.size, slice.mtime_ns, slice.group, columns
    table = _kept(which) if several else _decoded(which)  # a group of one slice is not read again
    yield from table.slice(slice.start, slice.stop - slice.start).to_batches(BATCH_ROWS)


def _bytes(group: pq.RowGroupMetaData, columns: tuple[str, ...]) -> int:
    """Return the uncompressed size of these columns."""
    chunks = (group.column(i) for i in range(group.num_columns))
    return sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.split(".")[0] in columns)


def _kept(which: _Group) -> pa.Table:
    kept: Keep[_Group, pa.Table] = current().row_groups
    return kept.made(which, partial(_decoded, which))


def _decoded(which: _Group) -> pa.Table:
    path, _, _, group, columns = which
    with _opened(path) as file:
        return file.read_row_group(group, columns=list(columns), use_threads=False)


def _streamed(slice: Slice, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    position = 0
    with _opened(slice.path) as file:
        for batch in file.iter_batches(BATCH_ROWS, [slice.group], list(columns), use_threads=False):
            start, stop = max(slice.start - position, 0), min(slice.stop - position, len(batch))
            if start < stop:
                yield batch.slice(start, stop - start)
            position += len(batch)
            if position >= slice.stop:
                return


def _opened(path: str) -> pq.ParquetFile:
    return pq.ParquetFile(path, memory_map=True, pre_buffer=False)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
