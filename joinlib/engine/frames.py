"""Cuts result rows into frames of bounded size."""

from collections.abc import Iterator

import pyarrow as pa

from joinlib.chunks import chunked
from joinlib.join.rows import Tuples, flat
from joinlib.model.stage import OutputColumn


def project(
    tuples: Iterator[Tuples], select: tuple[OutputColumn, ...], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Evaluate the select list: yield its columns for each batch of joined tuples."""
    for t in tuples:
        yield pa.record_batch([flat(c.value.evaluate(t.column, len(t))) for c in select], schema)


def frames(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of about `rows` rows: never more, and few that are smaller."""
    parts = (batch.slice(start, rows) for batch in batches for start in range(0, batch.num_rows, rows))
    for group in chunked(parts, len, rows):
        yield pa.concat_batches(group)
