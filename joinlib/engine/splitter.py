"""Turns rows of one source into exchange rows: prepare, note the highest event time, split by unit."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.engine.edge import Way
from joinlib.model.inputs import ORDINAL
from joinlib.model.time import NEVER
from joinlib.model.watermark import Tick

Prepare = Callable[[int, pa.RecordBatch], tuple[pa.RecordBatch, Sequence[pa.RecordBatch]]]


def exchange_rows(
    batches: Iterable[tuple[int, pa.RecordBatch]],
    edges: Sequence[Way],
    origin: int,
    bad: Callable[[], int] = lambda: 0,
    prepared: Prepare | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield exchange rows for every input over one source, then one tick for each.

    Ticks count all rows, including those that a filter drops: the watermark advances even
    where no row passes.

    Args:
        batches: Pairs (sequence number, rows of the source).
        edges: The ways to the inputs over the source (two in a self-join).
        origin: Tells the slices that are read apart from others of the source.
        bad: Returns the number of messages that could not be decoded; called once, at the end.
        prepared: Returns the rows that count, and what each way sends of them; by default, all rows count.
    """
    prepared = prepared or (lambda sequence, rows: (rows, [e.prepared(sequence, rows) for e in edges]))
    counts = [0] * len(edges)
    highest = [NEVER] * len(edges)
    for sequence, all_rows in batches:
        rows, blocks = prepared(sequence, all_rows)
        for at, (edge, block) in enumerate(zip(edges, blocks)):
            counts[at] += rows.num_rows
            if (time := edge.plan.source_time) is not None:
                highest[at] = max(highest[at], _highest(rows.column(time)))
            yield from edge.send(sequence, block)
    for edge in edges:
        yield from edge.end(origin)
    left_out = bad()
    for sender in dict.fromkeys(edge.sender for edge in edges):
        ticks = [
            Tick(edge.plan.number, h, c, left_out)
            for edge, h, c in zip(edges, highest, counts, strict=True)
            if edge.sender is sender and (c or left_out)
        ]
        if ticks:
            yield sender.ticks(ticks)


def numbered(
    batches: Iterable[tuple[int, pa.RecordBatch]], first: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the batches with a column of row numbers, which count from `first` on."""
    for sequence, rows in batches:
        yield sequence, with_numbers(rows, first)
        first += rows.num_rows


def with_numbers(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Append a column of row numbers, which count from `first` on."""
    numbers = pa.array(np.arange(first, first + rows.num_rows))
    return pa.record_batch([*rows.columns, numbers], names=[*rows.schema.names, ORDINAL])


def _highest(times: pa.Array) -> int:
    top = pc.max(times.view(pa.int64())).as_py()
    return NEVER if top is None else int(top)
