"""Runs one task: the units of one partition, in one batch of one stage."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from joinlib.engine.task import JoinTask
from joinlib.errors import StateError
from joinlib.route.slots import slots
from joinlib.state import epochs
from joinlib.state.location import unit_folder
from joinlib.state.manifests import Manifests

if TYPE_CHECKING:
    from joinlib.engine.attempt import Attempt, Save


class Turn:
    """Loads the units' manifests, yields each unit with its rows, and saves the new manifests."""

    def __init__(self, task: JoinTask, *, partition: int, partitions: int, batch: int) -> None:
        self.task, self.batch = task, batch
        self.slots = slots(task.pipeline.units)
        self.partition, self.partitions = partition, partitions
        epochs.check(task.states, task.epoch)
        self._manifests = self._of(task.number)
        self._stateful = task.number < len(task.pipeline.stateful)
        self.saved = self._manifests.after(self.batch - 1) if self._stateful else {}
        asked = task.pipeline.store_of(task.number)  # the level below has written this batch before we began
        self._asked = self._of(asked).after(self.batch) if asked != task.number else {}
        self._next = dict(self.saved)
        self._fresh: list[Path] = []

    def _of(self, stage: int) -> Manifests:
        task = self.task
        return Manifests(task.states, stage, self.partition, self.partitions, task.epoch, task.tuning.sync)

    def units(self, arrived: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[Sequence[Any]], "Save"]]:
        """Yield each unit with its exchange rows and the function that saves its manifest.

        Raises:
            StateError: A unit's rows have come to the wrong partition.
        """
        by_slot: dict[int, list[Sequence[Any]]] = {}
        for row in _rows(arrived):
            by_slot.setdefault(row[0], []).append(row)
        unit_of = {slot: unit for unit, slot in enumerate(self.slots)}
        for slot in sorted(by_slot):
            unit = unit_of[slot]
            if unit % self.partitions != self.partition:  # the unit would start empty and lose its state
                raise StateError(f"unit {unit} has come to partition {self.partition} of {self.partitions}")
            yield unit, by_slot.pop(slot), partial(self._save, unit)

    def unit(self, unit: int) -> "Attempt[Any, Any]":
        """Return the unit as it was before this batch."""
        from joinlib.engine.kinds import attempt

        known = self.saved.get(unit), self._asked.get(unit)
        return attempt(self.task, unit, self.batch, *known, partial(self._of_hops, unit))

    def _of_hops(self, unit: int) -> list[bytes]:
        """Return the manifests of the units that ask this one, after the batch before; few batches want them."""
        return [saved[unit] for saved in self._hops if unit in saved]

    @cached_property
    def _hops(self) -> list[dict[int, bytes]]:
        pipeline = self.task.pipeline
        later = [n for n in range(len(pipeline.stages)) if n != self.task.number]
        return [self._of(n).after(self.batch - 1) for n in later if pipeline.store_of(n) == self.task.number]

    def end(self) -> None:
        """Write the manifests of all units: the batch counts from here on."""
        if not self._stateful:
            return
        self._manifests.write(self.batch, self._next, self._fresh)
        self._manifests.sweep(self.batch, self.task.tuning.retain_batches)

    def _save(self, unit: int, manifest: bytes, fresh: Iterable[str]) -> None:
        self._next[unit] = manifest
        folder = unit_folder(self.task.state, unit)
        self._fresh += [folder / name for name in fresh]


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[Any]]:
    """Yield exchange rows; blocks are not copied."""
    for batch in batches:
        *columns, blocks = batch.columns
        yield from zip(*(column.to_pylist() for column in columns), _buffers(blocks), strict=True)


def _buffers(values: pa.BinaryArray) -> Iterator[pa.Buffer | None]:
    """Yield binary values, None where they are NULL."""
    _, ends, content = values.buffers()
    if content is None:
        yield from (None for _ in range(len(values)))
        return
    at = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1].tolist()
    for here, (start, stop) in zip(values.is_valid().to_pylist(), pairwise(at), strict=True):
        yield content.slice(start, stop - start) if here else None
