"""Runs one batch of one unit of groups: partials in, groups out."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from joinlib import fault
from joinlib.aggregate import bag as bags
from joinlib.aggregate.partial import schema
from joinlib.aggregate.unit import GroupUnit
from joinlib.engine.attempt import Arrived, Attempt
from joinlib.engine.exchange import receive_partials
from joinlib.engine.task import JoinTask
from joinlib.model.bags import bags_of
from joinlib.model.stage import GroupStage
from joinlib.state.manifest import Manifest, empty


class GroupTask(Attempt[GroupUnit, pa.RecordBatch]):
    """One batch of one unit of groups."""

    done = "grouped"

    def __init__(self, task: JoinTask, unit: int, batch: int, saved: bytes | None) -> None:
        assert isinstance(task.stage, GroupStage)
        self.stage, self.grouping = task.stage, task.stage.grouping
        super().__init__(task, unit, batch, saved)

    def new(self) -> Manifest:
        return empty(1, len(self.stage.inputs))

    @contextmanager
    def working(self, arrived: Arrived) -> Iterator[tuple[Iterator[pa.RecordBatch], GroupUnit]]:
        fault.point("handed", self.batch)
        stored = [bags.schema(self.grouping, bag) for bag in bags_of(self.grouping)]
        parts, ticks = receive_partials(arrived, [schema(self.grouping), *stored])
        with self.locked() as segments:
            unit = GroupUnit(
                self.stage, self.unit, segments, self.task.tuning, self.before, self.keeps_failed
            )
            yield unit.run(self.batch, parts, ticks), unit
