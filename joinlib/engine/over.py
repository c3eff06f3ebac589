"""Runs one batch of one unit of window functions: blocks of rows in, rows with the functions' values out."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from joinlib import fault
from joinlib.engine.attempt import Arrived, Attempt
from joinlib.engine.exchange import receive
from joinlib.engine.task import JoinTask
from joinlib.model.stage import OverStage
from joinlib.over.unit import OverUnit
from joinlib.state.manifest import Manifest, empty


class OverTask(Attempt[OverUnit, pa.RecordBatch]):
    """One batch of one unit of window functions."""

    done = "ranked"

    def __init__(self, task: JoinTask, unit: int, batch: int, saved: bytes | None) -> None:
        assert isinstance(task.stage, OverStage)
        self.stage = task.stage
        super().__init__(task, unit, batch, saved)

    def new(self) -> Manifest:
        return empty(1, len(self.stage.inputs))

    @contextmanager
    def working(self, arrived: Arrived) -> Iterator[tuple[Iterator[pa.RecordBatch], OverUnit]]:
        if self.task.number:
            fault.point("handed", self.batch)
        with self.locked() as segments:
            blocks = receive(arrived, self.stage.inputs, segments)
            unit = OverUnit(
                self.stage.over,
                self.stage.inputs,
                self.unit,
                segments,
                self.task.tuning,
                self.before,
                self.keeps_late,
                self.keeps_failed,
            )
            yield unit.run(self.batch, [row[:3] for row in blocks.rows], blocks.ticks), unit
