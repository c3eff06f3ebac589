"""One batch of one unit, as a task runs it: manifest in, frames or a receipt out, manifest saved."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import pyarrow as pa

from joinlib import fault
from joinlib.apart import Failing, KeepFailed
from joinlib.arrays import I64
from joinlib.engine.exchange import receipt_row
from joinlib.engine.frames import frames
from joinlib.engine.letters import failed, late, netted
from joinlib.engine.receipt import Receipt
from joinlib.engine.task import JoinTask
from joinlib.errors import NOTE, StateError
from joinlib.metric.cgroup import recent
from joinlib.model.inputs import InputPlan, KeepLate
from joinlib.model.time import NEVER
from joinlib.route.content import weighted, weights
from joinlib.route.slots import slots
from joinlib.sink.sink import Sink
from joinlib.state.location import local_folder, unit_folder
from joinlib.state.manifest import Manifest, decode
from joinlib.state.unit import held, locked

if TYPE_CHECKING:
    from joinlib.engine.forward import Forwarding

Arrived = Iterable[Sequence[Any]]  # exchange rows of one unit
Save = Callable[[bytes, Iterable[str]], None]  # an encoded manifest, and the files that are new in it


class BatchWork(Protocol):
    """The computation of one batch in one unit; all is valid once the whole result has been consumed."""

    manifest: Manifest  # the unit's after the batch
    closed: bool  # no more rows will be emitted

    @property
    def deleted(self) -> Sequence[int]:
        """Deletions in the batch, by input."""

    @property
    def unknown(self) -> Sequence[int]:
        """Deletions without their row, by input."""


W = TypeVar("W", bound=BatchWork)
R = TypeVar("R")  # what comes out: rows; of stages with routes, pairs of a route and rows
_UNHEARD = 0, 0, 0, 0, NEVER, 0, 0  # the figures of an input that another stage reads


class Attempt(ABC, Generic[W, R]):
    """One batch of one unit.

    `saved` is the unit's encoded manifest after the previous batch; None for the very first batch.
    """

    done: str  # the fault-injection point between the result and the manifest

    def __init__(self, task: JoinTask, unit: int, batch: int, saved: bytes | None) -> None:
        self.started = time.perf_counter()
        self.task, self.unit, self.batch = task, unit, batch
        self.before = decode(saved) if saved else self.new()
        if self.before.batch >= batch:
            raise StateError(
                f"unit {self.unit} of stage {task.number} is at batch {self.before.batch}, Spark at {batch}:"
                " the checkpoint was mixed up with another"
            )
        self._late: list[pa.RecordBatch] = []  # dead letters of the batch: of late rows
        self._failed: list[pa.RecordBatch] = []  # and of rows for which an expression fails

    @property
    def letters(self) -> list[pa.RecordBatch]:
        """The dead letters of the batch, once all that comes out has been consumed."""
        return [*self._late, *netted(self._failed)]

    @property
    def keeps_late(self) -> KeepLate | None:
        """What takes the late rows of inputs that keep them; None: there are none."""
        box, pipeline, names = self.task.letters, self.task.pipeline, dict[int, str]()
        if box is None or not box.late:
            return None
        for plan in self.task.stage.inputs:
            if (name := box.called_late(pipeline.late_of(plan))) is not None:
                names[plan.number] = name

        def take(plan: InputPlan, rows: pa.RecordBatch, by_us: I64) -> None:
            if plan.number in names and plan.again is None and rows.num_rows:
                self._late.append(late(names[plan.number], plan, rows, by_us))

        return take if names else None

    @property
    def keeps_failed(self) -> KeepFailed | None:
        """What takes the rows of this stage for which an expression fails; None: they are an error."""
        box = self.task.letters
        called = box.called(self.task.number) if box is not None else None
        if box is None or called is None:
            return None

        def take(rows: pa.RecordBatch, failing: Sequence[Failing]) -> None:
            if self.task.stage.changes:
                rows = weighted(rows, weights(rows))
            rows = rows.rename_columns([box.words.get(name, name) for name in rows.schema.names])
            self._failed.append(failed(failing, rows, *called))

        return take

    @contextmanager
    def named(self) -> Iterator[None]:
        """Note the stage and the unit on any exception that is raised in the block."""
        try:
            yield
        except Exception as error:
            error.add_note(f"{NOTE}unit {self.unit} of stage {self.task.number}")
            raise

    @abstractmethod
    def new(self) -> Manifest:
        """Return the unit's manifest before the first batch."""

    @abstractmethod
    def working(self, arrived: Arrived) -> AbstractContextManager[tuple[Iterator[R], W]]:
        """Yield the result rows and the work that computes them, holding the unit's files meanwhile."""

    def onward(self, arrived: Arrived, save: Save, onward: "Forwarding[R]") -> Iterator[R]:
        """Yield the result for later stages; give `onward` the watermark and, if wanted, the receipt."""
        task = self.task
        with self.named(), self.working(arrived) as (result, work):
            yield from result
            if self.unit == 0:  # time is the same in all units, so one speaks for all
                onward.time(work.manifest.watermark, work.closed)
            if task.sink.kind != "rows":
                slot, receipt = slots(task.pipeline.units)[self.unit], self.figures(work, 0, ())
                onward.reports.append(receipt_row(slot, len(task.pipeline.stages), receipt.encode()))
                onward.keep(slot, self.letters)
            self.end(work, save)

    def frames(self: "Attempt[W, pa.RecordBatch]", arrived: Arrived, save: Save) -> Iterator[pa.RecordBatch]:
        """Yield the result in frames of bounded size; save the manifest after the last one is consumed."""
        with self.named(), self.working(arrived) as (result, work):
            yield from self._framed(result)
            self.end(work, save)

    def receipt(
        self: "Attempt[W, pa.RecordBatch]", arrived: Arrived, save: Save, sink: Sink
    ) -> tuple[Receipt, bytes | None]:
        """Write the result into the task's sink and save the manifest.

        Returns the receipt for the driver, and the rows to show on the console, if any.
        """
        with self.named(), self.working(arrived) as (result, work):
            rows_out = 0
            for frame in self._framed(result):
                sink.write(frame)
                rows_out += frame.num_rows
            files, block = sink.next_unit()
            receipt = self.figures(work, rows_out, files)
            self.end(work, save)
        return receipt, block

    def _framed(self, result: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tuning = self.task.tuning
        return frames(result, tuning.frame_rows, tuning.frame_bytes)

    @contextmanager
    def locked(self) -> Iterator[Path]:
        """Yield the folder of the unit's segments, which no other attempt touches in the block."""
        segments, locks = unit_folder(self.task.state, self.unit), local_folder(self.task.state)
        locks.mkdir(parents=True, exist_ok=True)
        with locked(locks / f"{segments.name}.lock"):
            yield segments

    def end(self, work: W, save: Save) -> None:
        """Save the manifest: every result row has been consumed, so the batch counts from here on."""
        fault.point(self.done, self.batch)
        save(work.manifest.encode(), work.manifest.files - self.before.files)

    def figures(self, work: W, rows_out: int, files: tuple[str, ...], **own: Any) -> Receipt:
        """Build the unit's receipt. `own` holds the figures of the subclass."""
        after, container = work.manifest, recent()
        alive = held(after)
        rows_in, late, late_total, bad, highest, deleted, unknown = zip(*self._of_inputs(work), strict=True)
        return Receipt(
            unit=self.task.number * self.task.pipeline.units + self.unit,
            batch=self.batch,
            rows_out=rows_out,
            files=files,
            state_rows=alive.rows,
            state_bytes=alive.bytes,
            retired_bytes=sum([size for _, _, size in after.retired]),
            segments=alive.segments,
            runs=alive.runs,
            run_bytes=alive.run_bytes,
            watermark=after.watermark,
            seconds=time.perf_counter() - self.started,
            executor=os.environ.get("SPARK_EXECUTOR_ID", ""),
            working_set=container.working_set,
            memory_limit=container.limit,
            rows_in=rows_in,
            late=late,
            late_total=late_total,
            bad=bad,
            highest=highest,
            deleted=deleted,
            unknown=unknown,
            **{"index_bytes": 0, **own},
        )

    def _of_inputs(self, work: W) -> list[tuple[int, ...]]:
        """Return the figures of every input that is read from a source.

        Each is (rows, late rows, late rows in total, bad messages, highest event time, deletions, deletions
        without a row).
        """
        before, after, own = self.before, work.manifest, self.task.number
        late = {
            p.upstream: p.number for p in self.task.stage.inputs if p.settled
        }  # by the stage of the upsert
        found: list[tuple[int, ...]] = []
        for stage, p in self.task.pipeline.counted_inputs:
            n = p.number
            if stage == own:
                rows, bad = after.rows[n] - before.rows[n], after.bad[n] - before.bad[n]
                lost = after.late[n] - before.late[n], after.late[n]
                found.append((rows, *lost, bad, after.highest[n], work.deleted[n], work.unknown[n]))
            elif stage in late:
                n = late.pop(stage)  # told of the first input of a stage that unites several
                found.append((0, after.late[n] - before.late[n], after.late[n], *_UNHEARD[3:]))
            else:
                found.append(_UNHEARD)
        return found
