"""One batch of one unit, as a Spark task runs it: manifest in, frames or a receipt out, manifest saved."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from joinlib import fault
from joinlib.engine.frames import frames
from joinlib.engine.receipt import Receipt
from joinlib.engine.task import JoinTask
from joinlib.errors import NOTE, StateError
from joinlib.metric.cgroup import recent
from joinlib.model.time import NEVER
from joinlib.sink.sink import Sink
from joinlib.state.manifest import Manifest, decode
from joinlib.state.unit import held

Arrived = Iterable[Sequence[Any]]  # exchange rows of one unit
Save = Callable[[bytes, Iterable[str]], None]  # an encoded manifest, and the files that are new in it


class BatchWork(Protocol):
    """The computation of one batch in one unit.

    `manifest` is the unit's manifest after the batch, valid once the whole result has been consumed.
    """

    manifest: Manifest


W = TypeVar("W", bound=BatchWork)


class Attempt(ABC, Generic[W]):
    """One batch of one unit.

    `saved` is the unit's encoded manifest after the previous batch. For the very first batch it is None, and
    the unit starts with `new`.
    """

    done: str  # the fault-injection point between the result and the manifest

    def __init__(self, task: JoinTask, unit: int, batch: int, saved: bytes | None, new: Manifest) -> None:
        self.started = time.perf_counter()
        self.task, self.unit, self.batch = task, unit, batch
        self.before = decode(saved) if saved else new
        if self.before.batch >= batch:
            raise StateError(
                f"unit {self.unit} of stage {task.number} is at batch {self.before.batch}, Spark at {batch}:"
                " the checkpoint was mixed up with another"
            )

    @contextmanager
    def named(self) -> Iterator[None]:
        """Note the stage and the unit on any exception that is raised in the block."""
        try:
            yield
        except Exception as error:
            error.add_note(f"{NOTE}unit {self.unit} of stage {self.task.number}")
            raise

    @abstractmethod
    def working(self, arrived: Arrived) -> AbstractContextManager[tuple[Iterator[pa.RecordBatch], W]]:
        """Yield the result rows and the work that computes them, holding the unit's files meanwhile."""

    def frames(self, arrived: Arrived, save: Save) -> Iterator[pa.RecordBatch]:
        """Yield the result in frames of bounded size; save the manifest after the last one is consumed."""
        with self.named(), self.working(arrived) as (result, work):
            yield from frames(result, self.task.tuning.frame_rows)
            self.end(work, save)

    def receipt(self, arrived: Arrived, save: Save, sink: Sink) -> tuple[Receipt, bytes | None]:
        """Write the result into the task's sink and save the manifest.

        Returns the receipt for the driver, and the rows to show on the console, if any.
        """
        with self.named(), self.working(arrived) as (result, work):
            rows_out = 0
            for frame in frames(result, self.task.tuning.frame_rows):
                sink.write(frame)
                rows_out += frame.num_rows
            files, block = sink.next_unit()
            receipt = self.figures(work, rows_out, files)
            self.end(work, save)
        return receipt, block

    def end(self, work: W, save: Save) -> None:
        """Save the manifest: every result row has been consumed, so the batch counts from here on."""
        fault.point(self.done, self.batch)
        save(work.manifest.encode(), work.manifest.files - self.before.files)

    def figures(self, work: W, rows_out: int, files: tuple[str, ...], **own: Any) -> Receipt:
        """Build the unit's receipt.

        Figures that every unit has are computed here. `own` holds those of the subclass; figures per input
        that it does not give are zero.
        """
        after, container, nothing = work.manifest, recent(), (0,) * len(self.task.pipeline.numbered_inputs)
        alive, never = held(after), (NEVER,) * len(nothing)
        unsaid = {
            "rows_in": nothing,
            "late": nothing,
            "late_total": nothing,
            "bad": nothing,
            "deleted": nothing,
            "unknown": nothing,
            "highest": never,
        }
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
            **{**unsaid, "index_bytes": 0, **own},
        )
