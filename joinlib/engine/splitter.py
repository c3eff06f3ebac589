"""Turns rows of one source into exchange rows: prepare, note the highest event time, split by unit."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.engine.exchange import Sender, Spool
from joinlib.join.watermark import Tick
from joinlib.model.inputs import ORDINAL, InputPlan
from joinlib.model.time import NEVER
from joinlib.model.tuning import Tuning
from joinlib.route.split import prepare


def exchange_rows(
    batches: Iterable[tuple[int, pa.RecordBatch]],
    plans: Sequence[tuple[InputPlan, Sender]],
    hash_bits: int,
    bad: Callable[[], int] = lambda: 0,
) -> Iterator[pa.RecordBatch]:
    """Yield exchange rows for every input over one source, then one tick for each.

    Ticks count all rows, including those that a filter drops: the watermark advances even
    where no row passes.

    Args:
        batches: Pairs (sequence number, rows of the source).
        plans: The inputs over the source (two in a self-join), each with the sender of its stage.
        hash_bits: Bits of the key's hash that are kept.
        bad: Returns the number of messages that could not be decoded; called once, at the end.
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
    """Yield the batches with a column of row numbers, which count from `first` on."""
    for sequence, rows in batches:
        yield sequence, with_numbers(rows, first)
        first += rows.num_rows


def with_numbers(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Append a column of row numbers, which count from `first` on."""
    numbers = pa.array(np.arange(first, first + rows.num_rows))
    return pa.record_batch([*rows.columns, numbers], names=[*rows.schema.names, ORDINAL])


def spool(states: Path, tuning: Tuning, batch: int | None) -> Spool | None:
    """Return where a map task of `batch` may write large blocks; None outside of a batch."""
    return Spool(states, batch, tuning.spool_bytes) if batch is not None else None


def _highest(times: pa.Array) -> int:
    top = pc.max(times.view(pa.int64())).as_py()
    return NEVER if top is None else int(top)
