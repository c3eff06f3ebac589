"""Cuts result rows into frames of bounded size."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from joinlib.chunks import chunked
from joinlib.join.rows import Tuples, flat
from joinlib.model.inputs import WEIGHT
from joinlib.model.stage import OutputColumn
from joinlib.route.content import consolidated, weights

Routed = tuple[int, pa.RecordBatch]  # a route, and tuples that take it


def project(
    tuples: Iterator[Tuples], select: tuple[OutputColumn, ...], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Evaluate the select list: yield its columns for each batch of joined tuples.

    If `schema` ends with the weight, the rows are changes: those of all tuples are consolidated.
    """
    changes = schema.names[-1:] == [WEIGHT]
    made = (_selected(t, select, schema, changes) for t in tuples)
    yield from _together(made) if changes else made


def _selected(
    t: Tuples, select: tuple[OutputColumn, ...], schema: pa.Schema, changes: bool
) -> pa.RecordBatch:
    columns = [flat(c.value.evaluate(t.column, len(t))) for c in select]
    return pa.record_batch([*columns, flat(t.column(WEIGHT))] if changes else columns, schema)


def _together(changes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sum of all changes: what cancels in a batch never leaves its unit."""
    found = list(changes)
    if not any((weights(batch) < 0).any() for batch in found):
        yield from found
    elif (rows := consolidated(pa.concat_batches(found))).num_rows:
        yield rows


def frames(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of about `rows` rows: never more, and few that are smaller."""
    parts = (batch.slice(start, rows) for batch in batches for start in range(0, batch.num_rows, rows))
    for group in chunked(parts, len, rows):
        yield pa.concat_batches(group)


def frames_by_route(routed: Iterator[Routed], rows: int, many: int, most_bytes: int) -> Iterator[Routed]:
    """Yield the same tuples in batches of one route and about `rows` rows: never more, and few that are smaller.

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
        elif seen <= many and counts[route] >= rows:
            yield from ((route, frame) for frame in frames(iter(held.pop(route)), rows))
        if route not in held:
            del counts[route], sizes[route]
    for route in sorted(held):
        yield from (
            (route, frame) for frame in frames(iter(held[route]), max(rows, counts[route] * (seen > many)))
        )
