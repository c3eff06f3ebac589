"""Cuts result rows into frames of bounded size."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

import numpy as np
import pyarrow as pa

from joinlib.apart import KeepFailed, apart
from joinlib.chunks import chunked
from joinlib.errors import SpecError
from joinlib.expr import Columns
from joinlib.join.rows import Tuples, flat
from joinlib.model.inputs import WEIGHT
from joinlib.model.stage import OutputColumn
from joinlib.route.content import consolidated, weights

_FEW = 1 << 12  # tuples that are never cut
_SAMPLED = 64
Routed = tuple[int, pa.RecordBatch]  # a route, and tuples that take it


def project(
    tuples: Iterator[Tuples],
    select: tuple[OutputColumn, ...],
    schema: pa.Schema,
    most_bytes: int,
    failed: KeepFailed | None = None,
) -> Iterator[pa.RecordBatch]:
    """Evaluate the select list: yield its columns for each batch of joined tuples, about `most_bytes` at once.

    If `schema` ends with the weight, the rows are changes: those of all tuples are consolidated. failed: takes the
    rows for which a column fails, in the columns that the list reads; None: they are an error.
    """
    changes = schema.names[-1:] == [WEIGHT]
    read = {name for c in select for name in c.value.columns}
    some = (part for many in tuples for part in few(many, read, most_bytes))
    found = _evaluated(some, select, schema, failed)
    yield from _together(found) if changes else found


def few(many: Tuples, read: Iterable[str], most_bytes: int) -> Iterator[Tuples]:
    """Yield the same tuples, at once so many that these columns take about `most_bytes`, judged by a sample."""
    if len(many) <= _FEW:
        yield many
        return
    sample = many.take(np.linspace(0, len(many) - 1, _SAMPLED, dtype=np.int64))
    width = sum(flat(sample.column(name)).nbytes for name in read) // _SAMPLED + 1
    yield from many.slices(max(most_bytes // width, _FEW))


def _evaluated(
    tuples: Iterator[Tuples], select: tuple[OutputColumn, ...], schema: pa.Schema, failed: KeepFailed | None
) -> Iterator[pa.RecordBatch]:
    """Evaluate the select list; of changes, what has no value fails only if it remains when all have come."""
    changes = schema.names[-1:] == [WEIGHT]
    read = list(dict.fromkeys(name for c in select for name in c.value.columns))
    named = [*read, WEIGHT] if changes else read
    left: list[pa.RecordBatch] = []
    for t in tuples:
        try:
            yield _selected(t.column, len(t), select, schema)
        except SpecError:
            if not read or not (changes or failed):
                raise
            rows = pa.record_batch([flat(t.column(name)) for name in named], named)
            if changes:
                left.append(rows)
            elif failed:
                yield from _sound(rows, select, schema, failed)
    if left and (rows := consolidated(pa.concat_batches(left))).num_rows:
        if failed:
            yield from _sound(rows, select, schema, failed)
        else:
            yield _selected(rows.column, rows.num_rows, select, schema)


def _sound(
    rows: pa.RecordBatch, select: tuple[OutputColumn, ...], schema: pa.Schema, failed: KeepFailed
) -> Iterator[pa.RecordBatch]:
    """Yield what is selected of the rows for which no column fails; give the others to `failed`."""
    _, made, failing = apart(
        rows, lambda some: _selected(some.column, some.num_rows, select, schema), SpecError
    )
    if failing:
        failed(rows, failing)
    if made is not None:
        yield made


def _selected(
    column: Columns, rows: int, select: tuple[OutputColumn, ...], schema: pa.Schema
) -> pa.RecordBatch:
    columns = [flat(c.value.evaluate(column, rows)) for c in select]
    changes = schema.names[-1:] == [WEIGHT]
    return pa.record_batch([*columns, flat(column(WEIGHT))] if changes else columns, schema)


def _together(changes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sum of all changes: what cancels in a batch never leaves its unit."""
    found = list(changes)
    if not any((weights(batch) < 0).any() for batch in found):
        yield from found
    elif (rows := consolidated(pa.concat_batches(found))).num_rows:
        yield rows


def frames(
    batches: Iterator[pa.RecordBatch], rows: int, most_bytes: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of about `rows` rows: never more, and few that are smaller.

    most_bytes: batches that would be larger together stay apart.
    """

    def size(part: pa.RecordBatch) -> int:
        own: int = part.num_rows
        return own if most_bytes is None else max(own, ceil(part.nbytes * rows / most_bytes))

    parts = (batch.slice(start, rows) for batch in batches for start in range(0, batch.num_rows, rows))
    for group in chunked(parts, size, rows):
        yield group[0] if len(group) == 1 else pa.concat_batches(group)


def by_route(
    routed: Iterator[tuple[int, Tuples]], schemas: Mapping[int, pa.Schema], most_bytes: int
) -> Iterator[Routed]:
    """Yield the same tuples as record batches of about `most_bytes`, each in the columns of its route."""
    for route, tuples in routed:
        schema = schemas[route]
        yield from ((route, some.batch(schema)) for some in few(tuples, schema.names, most_bytes))


def frames_by_route(routed: Iterator[Routed], rows: int, many: int, most_bytes: int) -> Iterator[Routed]:
    """Yield the same tuples in batches of one route and about `rows` rows, or `most_bytes` where rows are wide.

    Behind the first `many` tuples the batches are of about `most_bytes`, so that however many come, there are few.
    """
    held: dict[int, list[pa.RecordBatch]] = {}
    counts, sizes, seen = Counter[int](), Counter[int](), 0
    for route, batch in routed:
        held.setdefault(route, []).append(batch)
        counts[route] += batch.num_rows
        sizes[route] += batch.nbytes
        seen += batch.num_rows
        if seen > many and sizes[route] >= most_bytes:
            yield route, pa.concat_batches(held.pop(route))
        elif seen <= many and (counts[route] >= rows or sizes[route] >= most_bytes):
            yield from ((route, frame) for frame in frames(iter(held.pop(route)), rows))
        if route not in held:
            del counts[route], sizes[route]
    for route in sorted(held):
        yield from (
            (route, frame) for frame in frames(iter(held[route]), max(rows, counts[route] * (seen > many)))
        )
