"""Runs one batch of one unit of a stage: blocks in; frames, a receipt or exchange rows out."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pyarrow as pa

from joinlib import fault
from joinlib.engine.attempt import Arrived, Attempt
from joinlib.engine.exchange import receive
from joinlib.engine.frames import project
from joinlib.engine.lookups import Finders, figures_of, finders
from joinlib.engine.receipt import Receipt
from joinlib.engine.task import JoinTask
from joinlib.join.unit import UnitJoin
from joinlib.lookup.enrich import enriched
from joinlib.model.stage import Stage
from joinlib.state.location import local_folder, unit_folder
from joinlib.state.manifest import Manifest, empty
from joinlib.state.unit import Unit, hold


class _Storing(Protocol):
    """The computation of a batch in a unit that stores rows."""

    unit: Unit
    commit_seconds: float

    @property
    def chosen(self) -> tuple[dict[str, Any], ...]:
        """The figures of probe orders, if some were chosen after this batch."""


def stored(work: _Storing) -> dict[str, Any]:
    """Return a receipt's figures of the state and its indexes, and of the probe orders."""
    return {
        "dead_rows": work.unit.dead_rows,
        "index_bytes": work.unit.index_bytes,
        "commit_seconds": work.commit_seconds,
        "merged_bytes": work.unit.merged_bytes,
        "probes": work.chosen,
    }


class UnitTask(Attempt[UnitJoin, pa.RecordBatch]):
    """One batch of one unit of a stage."""

    done = "joined"

    def __init__(self, task: JoinTask, unit: int, batch: int, saved: bytes | None) -> None:
        assert isinstance(task.stage, Stage)
        self.stage = task.stage
        self.sides = self.stage.sides
        self.finders: Finders = ()  # set by `working`
        super().__init__(task, unit, batch, saved)

    def new(self) -> Manifest:
        return empty(len(self.sides), len(self.stage.inputs))

    @contextmanager
    def working(self, arrived: Arrived) -> Iterator[tuple[Iterator[pa.RecordBatch], UnitJoin]]:
        stage, tuning = self.stage, self.task.tuning
        if self.task.number:
            fault.point("handed", self.batch)
        segments = unit_folder(self.task.state, self.unit)
        indexes = local_folder(self.task.state) / segments.name
        blocks = receive(arrived, stage.inputs, segments)
        with hold(segments, indexes, stage.skip_bits, self.sides, tuning, self.before, self.task.run) as held:
            join = UnitJoin(
                stage.root,
                stage.inputs,
                stage.timed,
                stage.final_close,
                tuning,
                held,
                self.before,
                self.keeps_late,
                self.keeps_failed,
            )
            self.finders = finders(self.task, blocks.versions, indexes)
            found = enriched(join.run(self.batch, blocks), self.finders, stage.reads, self.keeps_failed)
            made = project(found, stage.select, stage.emitted, tuning.frame_bytes, self.keeps_failed)
            yield made, join

    def figures(self, work: UnitJoin, rows_out: int, files: tuple[str, ...], **own: Any) -> Receipt:
        """Build the receipt, with the figures of the indexes, the tables and the probe orders."""
        return super().figures(
            work,
            rows_out,
            files,
            **stored(work),
            tables=figures_of(self.finders),
            **own,
        )
