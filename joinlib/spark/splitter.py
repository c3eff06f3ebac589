"""Rows of one source become exchange rows: prepare, note the highest event time, split by unit."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from joinlib.join.watermark import Tick
from joinlib.route.config import ORDINAL, InputPlan
from joinlib.route.split import prepare
from joinlib.spark.exchange import Sender, Spool
from joinlib.state.manifest import NEVER
from joinlib.state.tuning import Tuning


def exchange_rows(
    batches: Iterable[tuple[int, pa.RecordBatch]],
    plans: Sequence[tuple[InputPlan, Sender]],
    hash_bits: int,
    bad: Callable[[], int] = lambda: 0,
) -> Iterator[pa.RecordBatch]:
    """(sequence, rows of one source) for every input over it (a self-join has two), then one tick for each.

    `plans`: these inputs, each with the sender of its stage. Ticks count all rows, also those a filter drops: time goes on
    where nothing of interest happens. `bad`, asked at the end, is how many messages were no rows.
    """
    counts = [0] * len(plans)
    highest = [NEVER] * len(plans)
    for sequence, rows in batches:
        for at, (plan, sender) in enumerate(plans):
            counts[at] += rows.num_rows
            if (time := plan.source_time) is not None:
                highest[at] = max(highest[at], _highest(rows.column(time)))
            blocks = sender.split(plan.number, sequence, prepare(plan, rows, sequence, hash_bits))
            if blocks is not None:
                yield blocks
    left_out = bad()
    for sender in dict.fromkeys(sender for _, sender in plans):
        ticks = [
            Tick(plan.number, h, c, left_out)
            for (plan, its), h, c in zip(plans, highest, counts, strict=True)
            if its is sender and (c or left_out)
        ]
        if ticks:
            yield sender.ticks(ticks)


def numbered(
    batches: Iterable[tuple[int, pa.RecordBatch]], first: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches with a column of their rows' numbers, counted on from `first`."""
    for sequence, rows in batches:
        yield sequence, with_numbers(rows, first)
        first += rows.num_rows


def with_numbers(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """The rows with a column of their numbers."""
    numbers = pa.array(np.arange(first, first + rows.num_rows))
    return pa.record_batch([*rows.columns, numbers], names=[*rows.schema.names, ORDINAL])


def spool(states: Path, tuning: Tuning) -> Spool | None:
    """Where this map task may write large blocks; nowhere outside of a batch."""
    context = TaskContext.get()
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    return Spool(states, int(batch), tuning.spool_bytes) if batch is not None else None


def _highest(times: pa.Array) -> int:
    top = pc.max(times.view(pa.int64())).as_py()
    return NEVER if top is None else int(top)
