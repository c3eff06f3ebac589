"""The way of rows to a stage that reads them, in a map task or in a task of an earlier stage.

Way            rows ─► prepared ─► split by unit ─► blocks                             joins, window functions
GatheringWay   rows ─► prepared, until there are enough ─► split by unit ─► blocks     the same, in a map task
TwinWay                nothing: the rows come as those of another input                 a self-join, one of two names
GroupWay       rows ─► partials, one for each group (by panes), at the end ─► blocks   groups
TopWay         rows ─► those up to the top of each partition, at the end ─► blocks     row_number() <= n, and its like
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from joinlib.aggregate.panes import PanePartials
from joinlib.aggregate.partial import Partials
from joinlib.engine.exchange import Sender, Spool
from joinlib.model.inputs import InputPlan
from joinlib.model.over import Over
from joinlib.model.panes import panes_of
from joinlib.model.stage import GroupStage, HopStage, OverStage, PathStage, Pipeline, Stage
from joinlib.model.tuning import Tuning
from joinlib.over.top import Top
from joinlib.route.routers import Router
from joinlib.route.split import prepare, projected

SPLIT_ROWS = 1 << 19  # of an input that wait in a map task
SPLIT_BYTES = 1 << 26  # or so many bytes; what comes in larger parts goes alone


class Way:
    """Sends rows to a stage as they come. `plan` is the input as which the stage reads them."""

    def __init__(self, plan: InputPlan, sender: Sender, hash_bits: int) -> None:
        self.plan, self.sender, self._hash_bits = plan, sender, hash_bits

    def rows(self, sequence: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield exchange rows for these rows. `sequence` orders the blocks of an input."""
        return self.send(sequence, self.prepared(sequence, rows))

    def prepared(self, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return what is sent of these rows: those that pass the filter, in the columns of blocks.

        Raises:
            SpecError: An expression fails for a row.
        """
        return prepare(self.plan, rows, sequence, self._hash_bits)

    def send(self, sequence: int, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield exchange rows for prepared rows."""
        if (sent := self.sender.split(self.plan.number, sequence, block)) is not None:
            yield sent

    def end(self, origin: int) -> Iterator[pa.RecordBatch]:
        """Yield what is still to be sent. `origin` tells who sends apart from all others."""
        return iter(())


class GatheringWay(Way):
    """Sends the rows of a map task, up to SPLIT_ROWS at once.

    Row groups, and what a filter leaves of them, may be small, but each block is a file, a segment and a probe
    of its unit. Blocks have the number of the last rows in them.
    """

    def __init__(self, plan: InputPlan, sender: Sender, hash_bits: int) -> None:
        super().__init__(plan, sender, hash_bits)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0  # that wait: counted, as there may be very many parts
        self._last = 0  # the number of the last rows that wait

    def send(self, sequence: int, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not block.num_rows:
            return
        count, size = block.num_rows, block.nbytes
        if self._rows + count > SPLIT_ROWS or self._bytes + size > SPLIT_BYTES:
            yield from self.end(sequence)
        self._waiting.append(block)
        self._rows, self._bytes, self._last = self._rows + count, self._bytes + size, sequence

    def end(self, origin: int) -> Iterator[pa.RecordBatch]:
        if self._waiting:
            block = pa.concat_batches(self._waiting)
            self._waiting, self._rows, self._bytes = [], 0, 0
            if (sent := self.sender.split(self.plan.number, self._last, block)) is not None:
                yield sent


class TwinWay(Way):
    """Sends nothing: the same rows come to the stage as those of another input."""

    def prepared(self, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        return super().prepared(sequence, rows.slice(0, 0))

    def send(self, sequence: int, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return iter(())


class GroupWay(Way):
    """Sends one partial for each group of all rows, when there are no more."""

    def __init__(self, plan: InputPlan, sender: Sender, stage: GroupStage) -> None:
        panes = panes_of(plan, stage.grouping)
        super().__init__(panes.rows if panes else plan, sender, 0)
        self._partials = PanePartials(panes, stage.grouping) if panes else Partials(stage.grouping)

    def prepared(self, sequence: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        return projected(self.plan, rows)

    def send(self, sequence: int, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._partials.add(block)
        return iter(())

    def end(self, origin: int) -> Iterator[pa.RecordBatch]:
        for number, block in self._partials.blocks():
            if (sent := self.sender.split(number, origin | self.plan.number << 56, block)) is not None:
                yield sent


class TopWay(Way):
    """Sends the rows up to the top rank of each partition, when there are no more.

    Where that leaves out too few, it sends the rest as it comes. Blocks have the number of the last rows in them.
    """

    def __init__(self, plan: InputPlan, sender: Sender, hash_bits: int, over: Over) -> None:
        super().__init__(plan, sender, hash_bits)
        self._over, self._sequence = over, 0
        self._top: Top | None = None  # none are waiting
        self._pays = True

    def send(self, sequence: int, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not self._pays:
            yield from super().send(sequence, block)
            return
        self._top, self._sequence = self._top or Top(self._over), sequence
        self._top.add(block)
        if not self._top.pays:
            self._pays = False
            yield from self.end(sequence)

    def end(self, origin: int) -> Iterator[pa.RecordBatch]:
        if self._top is not None:
            block, self._top = self._top.rows(), None
            if (sent := self.sender.split(self.plan.number, self._sequence, block)) is not None:
                yield sent


def senders(
    pipeline: Pipeline,
    states: Path,
    tuning: Tuning,
    batch: int | None,
    ways: Mapping[int, Router] | None = None,
) -> tuple[Sender, ...]:
    """Return what sends exchange rows to each stage.

    batch: None outside of one: then nothing is spooled. ways: routers other than the default one, by stage.
    """
    spool = Spool(states, batch, tuning.spool_bytes) if batch is not None else None
    return tuple(
        Sender(
            pipeline,
            n,
            spool if isinstance(stage, Stage | PathStage | HopStage) else None,
            (ways or {}).get(n),
        )
        for n, stage in enumerate(pipeline.stages)
    )


def edge(
    pipeline: Pipeline, number: int, plan: InputPlan, sender: Sender, hash_bits: int, gathering: bool = False
) -> Way:
    """Return the way to stage `number`.

    gathering: whether rows wait for each other, since they come in parts of any size.
    """
    stage = pipeline.stages[number]
    if plan.twin is not None:
        return TwinWay(plan, sender, hash_bits)
    if isinstance(stage, GroupStage):
        return GroupWay(plan, sender, stage)
    if isinstance(stage, OverStage) and stage.over.cuts:
        return TopWay(plan, sender, hash_bits, stage.over)
    return (GatheringWay if gathering else Way)(plan, sender, hash_bits)
