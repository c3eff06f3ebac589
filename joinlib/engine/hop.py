"""Runs one batch of one unit of a later level of a path join: tuples in, longer tuples out.

It asks the state of the PathStage in the unit of the same number, as it is after the batch. The level below has
ended, so that state cannot change meanwhile; should a task there run once more, it makes the same files again.
"""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from joinlib import fault
from joinlib.engine.attempt import Arrived, Attempt, R
from joinlib.engine.exchange import receive
from joinlib.engine.frames import Routed, by_route, project
from joinlib.engine.lookups import Finders, figures_of, finders
from joinlib.engine.receipt import Receipt
from joinlib.engine.task import JoinTask
from joinlib.errors import StateError
from joinlib.join.arrived import Blocks
from joinlib.join.hop import HopUnit
from joinlib.lookup.enrich import enriched
from joinlib.model.stage import HopStage, PathStage
from joinlib.state.location import local_folder, state_folder, unit_folder
from joinlib.state.manifest import Manifest, decode, empty
from joinlib.state.unit import hold, sweep


class Hopping(Attempt[HopUnit, R]):
    """One batch of one unit of a HopStage.

    asked: the manifest of the unit that it asks, after this batch; None: that has had no rows yet.
    """

    done = "hopped"

    def __init__(
        self, task: JoinTask, unit: int, batch: int, saved: bytes | None, asked: bytes | None
    ) -> None:
        assert isinstance(task.stage, HopStage)
        self.stage, self.store = task.stage, task.pipeline.store_of(task.number)
        super().__init__(task, unit, batch, saved)
        store = self._store
        self.asked = decode(asked) if asked else empty(len(store.sides), len(store.inputs))

    @property
    def _store(self) -> PathStage:
        stage = self.task.pipeline.stages[self.store]
        assert isinstance(stage, PathStage)
        return stage

    def new(self) -> Manifest:
        return empty(0, len(self.stage.inputs))

    @contextmanager
    def working(self, arrived: Arrived) -> Iterator[tuple[Iterator[R], HopUnit]]:
        fault.point("handed", self.batch)
        with self.locked() as own:
            if own.exists():
                sweep(own, self.before)  # tuples of earlier batches
            blocks = receive(arrived, self.stage.inputs, own)
            with self._hopping(blocks) as work:
                yield self.made(work, blocks), work

    @contextmanager
    def _hopping(self, blocks: Blocks) -> Iterator[HopUnit]:
        """Yield the work; where no tuples came, nothing is opened.

        Raises:
            StateError: There are tuples, but no state after this batch.
        """
        task, store = self.task, self._store
        if not blocks.rows:
            yield HopUnit(self.stage, store, (), task.tuning, self.before, self.asked)
            return
        if self.asked.batch != self.batch:
            raise StateError(
                f"unit {self.unit} of stage {self.store} is at batch {self.asked.batch}, its tuples are of"
                f" batch {self.batch}: the checkpoint was mixed up with another"
            )
        state = state_folder(task.states, self.store)
        segments = unit_folder(state, self.unit)
        indexes = local_folder(state) / segments.name
        with hold(
            segments, indexes, store.skip_bits, store.sides, task.tuning, self.asked, task.run, swept=False
        ) as held:
            yield HopUnit(self.stage, store, held.sides, task.tuning, self.before, self.asked)

    @abstractmethod
    def made(self, work: HopUnit, blocks: Blocks) -> Iterator[R]:
        """Return what comes out."""


class HopTask(Hopping[Routed]):
    """A unit whose tuples go on to the next level."""

    def made(self, work: HopUnit, blocks: Blocks) -> Iterator[Routed]:
        schemas = {leg.route: leg.schema for leg in self.stage.legs}
        return by_route(work.run(self.batch, blocks), schemas, self.task.tuning.frame_bytes)


class LastHopTask(Hopping[pa.RecordBatch]):
    """A unit of the last level: its tuples are rows of the result."""

    finders: Finders = ()  # set by `made`

    def made(self, work: HopUnit, blocks: Blocks) -> Iterator[pa.RecordBatch]:
        indexes = local_folder(self.task.state) / unit_folder(self.task.state, self.unit).name
        self.finders = finders(self.task, blocks.versions, indexes)
        found = (tuples for _, tuples in work.run(self.batch, blocks))
        rows = enriched(found, self.finders, self.stage.reads, self.keeps_failed)
        select, most = self.stage.select, self.task.tuning.frame_bytes
        return project(rows, select, self.stage.emitted, most, self.keeps_failed)

    def figures(self, work: HopUnit, rows_out: int, files: tuple[str, ...], **own: Any) -> Receipt:
        """Build the receipt, with the figures of the tables."""
        return super().figures(work, rows_out, files, tables=figures_of(self.finders), **own)
