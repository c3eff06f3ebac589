"""Runs one batch of one unit of a stage: blocks in; frames, a receipt or exchange rows out."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from joinlib import fault
from joinlib.engine.attempt import Arrived, Attempt, Save
from joinlib.engine.exchange import receipt_row, receive
from joinlib.engine.forward import Forwarder
from joinlib.engine.frames import project
from joinlib.engine.receipt import Receipt
from joinlib.engine.task import JoinTask
from joinlib.join.unit import Blocks, UnitJoin
from joinlib.lookup.enrich import Finder, enriched, finder
from joinlib.model.joins import Lookup
from joinlib.model.time import NEVER
from joinlib.route.slots import slots
from joinlib.state.location import local_folder, unit_folder
from joinlib.state.manifest import empty
from joinlib.state.unit import hold

_UNHEARD = 0, 0, 0, 0, NEVER, 0, 0  # the figures of an input that another stage reads


class UnitTask(Attempt[UnitJoin]):
    """One batch of one unit of a stage."""

    done = "joined"

    def __init__(self, task: JoinTask, unit: int, batch: int, saved: bytes | None) -> None:
        self.stage = task.stage
        self.sides = self.stage.sides
        self.finders: list[tuple[Lookup, Finder]] = []  # set by `working`
        new = empty(len(self.sides), len(self.stage.inputs))
        super().__init__(task, unit, batch, saved, new)

    def onward(self, arrived: Arrived, save: Save, onward: Forwarder) -> Iterator[pa.RecordBatch]:
        """Yield the result for the next operator; give `onward` the watermark and, if wanted, the receipt."""
        task = self.task
        with self.named(), self.working(arrived) as (result, join):
            yield from result
            if self.unit == 0:  # time is the same in all units, so one speaks for all
                onward.time(join.manifest.watermark, join.closed)
            if task.sink.kind != "rows":
                slot, receipt = slots(task.pipeline.units)[self.unit], self.figures(join, 0, ())
                onward.reports.append(receipt_row(slot, task.pipeline.operators, receipt.encode()))
            self.end(join, save)

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
                stage.root, stage.inputs, stage.timed, stage.final_close, tuning, held, self.before
            )
            self.finders = self._lookups(blocks, indexes)
            found = enriched(join.run(self.batch, blocks), self.finders, stage.reads)
            yield project(found, stage.select, stage.emitted), join

    def _lookups(self, blocks: Blocks, folder: Path) -> list[tuple[Lookup, Finder]]:
        units, bits = self.stage.units, self.task.tuning.hash_bits
        return [(t.lookup, finder(t, blocks.versions, folder, units, bits)) for t in self.task.looked_up]

    def figures(self, work: UnitJoin, rows_out: int, files: tuple[str, ...], **own: Any) -> Receipt:
        """Build the receipt, with the figures of the inputs, the indexes, the tables and the probe orders."""
        rows_in, late, late_total, bad, highest, deleted, unknown = zip(*self._of_inputs(work), strict=True)
        return super().figures(
            work,
            rows_out,
            files,
            rows_in=rows_in,
            late=late,
            late_total=late_total,
            bad=bad,
            highest=highest,
            deleted=deleted,
            unknown=unknown,
            dead_rows=work.unit.dead_rows,
            index_bytes=work.unit.index_bytes,
            commit_seconds=work.commit_seconds,
            merged_bytes=work.unit.merged_bytes,
            tables=tuple([found.used() for _, found in self.finders]),
            probes=work.chosen,
            **own,
        )

    def _of_inputs(self, work: UnitJoin) -> list[tuple[int, ...]]:
        """Return the figures of every input that is read from a source.

        Each is (rows, late rows, late rows in total, bad messages, highest event time, deletions, deletions
        without a row).
        """
        before, after, own = self.before, work.manifest, self.task.number
        late = {p.upstream: p.number for p in self.stage.inputs if p.settled}  # by the stage of the upsert
        found: list[tuple[int, ...]] = []
        for stage, p in self.task.pipeline.numbered_inputs:
            n = p.number
            if stage == own:
                rows, bad = after.rows[n] - before.rows[n], after.bad[n] - before.bad[n]
                lost = after.late[n] - before.late[n], after.late[n]
                found.append((rows, *lost, bad, after.highest[n], work.deleted[n], work.unknown[n]))
            elif stage in late:
                n = late[stage]
                found.append((0, after.late[n] - before.late[n], after.late[n], *_UNHEARD[3:]))
            else:
                found.append(_UNHEARD)
        return found
