"""Which batch has read a slice, and how far was time before it?

    the last batches      Spark's log and the manifests
    those before them     the timeline of the checkpoint

Of what batches read that neither knows it is only known that they did, and that the watermark has not been later than
that of the first one behind them that is known.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from joinlib.arrays import I64
from joinlib.checkpoint import batches, timeline
from joinlib.checkpoint.identity import begun, refusals
from joinlib.errors import SpecError, StateError
from joinlib.model.stage import Pipeline
from joinlib.model.time import ALWAYS, NEVER
from joinlib.state import manifests
from joinlib.state.manifest import Manifest, decode


@dataclass(frozen=True)
class ReadBy:
    """The batch that has read something."""

    batch: int | None  # None: none has begun with it
    exact: bool  # False: that batch, or one before it
    done: bool


def check_known(checkpoint: Path, pipeline: Pipeline) -> None:
    """Check that a checkpoint has batches that are done, of this plan.

    Raises:
        SpecError: It has not.
        StateError: It cannot be read.
    """
    if not begun(checkpoint) or batches.done(checkpoint / "spark") is None:
        raise SpecError(f"checkpoint.path: no run so far: {checkpoint} holds no batch that is done")
    check_query(checkpoint, pipeline)


def check_query(checkpoint: Path, pipeline: Pipeline) -> None:
    """Check that a checkpoint that was begun is of this plan.

    Raises:
        SpecError: It is of another one.
        StateError: It cannot be read.
    """
    if changes := refusals(checkpoint, pipeline):
        what = "\n".join(f"  - {change}" for change in changes)
        raise SpecError(
            f"checkpoint {checkpoint} is of another query; ask with the spec that it runs with:\n{what}"
        )


class Progress:
    """The batches that a checkpoint knew when this was made."""

    def __init__(self, checkpoint: Path, pipeline: Pipeline) -> None:
        spark, self._states, self._pipeline = checkpoint / "spark", checkpoint / "state", pipeline
        self.done = batches.done(spark)
        self._ends: dict[int, dict[str, Any]] = {}
        for batch in batches.all_begun(spark):
            try:
                self._ends[batch] = batches.offset(spark, batch)
            except StateError:  # a job that runs has just forgotten it
                continue
        # After the logs: what a job that runs has forgotten of them is kept there by then.
        self._past = timeline.known(checkpoint, before=0 if self.done is None else self.done + 1)
        self._read: dict[str, tuple[I64, I64]] = {}

    def read_by(self, source: str, slice: int) -> ReadBy:
        """Return the batch that has read a slice of a source."""
        known, ends = self._ends_of(source)
        at = int(np.searchsorted(ends, slice, side="right"))
        if at == len(known):
            return ReadBy(None, True, False)
        batch = int(known[at])
        exact = batch == 0 or (at > 0 and int(known[at - 1]) == batch - 1)
        return ReadBy(batch, exact, self.done is not None and batch <= self.done)

    def _ends_of(self, source: str) -> tuple[I64, I64]:
        """Return the batches that are known, and how many slices of a source were read when each ended."""
        if source not in self._read:
            known, ends = self._past.read(source)
            last = np.array(sorted(self._ends), np.int64)
            own = [int(self._ends[batch]["inputs"].get(source, 0)) for batch in last.tolist()]
            old = known < min(self._ends, default=0)
            self._read[source] = np.append(known[old], last), np.append(ends[old], np.array(own, np.int64))
        return self._read[source]

    def end(self, source: str) -> int:
        """Return how many slices of a source batches have begun to read."""
        return max((int(end["inputs"].get(source, 0)) for end in self._ends.values()), default=0)

    def tables(self) -> dict[str, int]:
        """Return the version of each table, by its name in the SQL, that the last batch that is done has seen."""
        last = self._ends.get(self.done) if self.done is not None else None
        return dict(last.get("tables", {})) if last else {}

    def watermark_before(self, stage: int, by: ReadBy) -> tuple[int, bool]:
        """Return the watermark of a stage before a batch, µs, and whether it is known; if not, it was no later."""
        if by.batch == 0:
            return NEVER, True
        assert by.batch is not None
        known = by.batch - 1 if by.exact else by.batch
        if (watermark := self._past.watermark(self._stored(stage), known)) is not None:
            return watermark, by.exact
        try:
            before = self._manifest(stage, known)
        except StateError:
            return ALWAYS, False
        return before.watermark, by.exact

    def watermark(self, stage: int) -> int:
        """Return the watermark of a stage now, µs."""
        return NEVER if self.done is None else self._manifest(stage, self.done).watermark

    def holder(self, stage: int) -> tuple[str, int | None]:
        """Return the input that holds the watermark of a stage back, and how far it is, µs (None: no row came)."""
        if self.done is None or self.watermark(stage) == ALWAYS:
            return "", None
        highest = self._manifest(stage, self.done).highest
        inputs = self._pipeline.stages[stage].inputs
        timed = (p for p in inputs if p.time is not None or p.clock is not None)
        heard = [p for p in timed if p.source not in self._idle]
        if not heard:
            return "", None
        held = min(heard, key=lambda p: highest[p.number] - p.delay_us)
        if held.upstream is not None:
            return self.holder(self._pipeline.store_of(held.upstream))
        top = highest[held.number]
        return held.source, None if top == NEVER else top - held.delay_us

    @cached_property
    def _idle(self) -> frozenset[str]:
        last = self._ends.get(self.done if self.done is not None else -1)
        return frozenset(last["idle"]) if last else frozenset()

    @cached_property
    def _known(self) -> dict[tuple[int, int], Manifest]:
        return {}

    def _manifest(self, stage: int, batch: int) -> Manifest:
        """Return the manifest of one unit: all units hear the same of time."""
        stage = self._stored(stage)
        if (stage, batch) not in self._known:
            saved = manifests.one(self._states, batch, stage)
            assert saved is not None
            self._known[stage, batch] = decode(saved)
        return self._known[stage, batch]

    def _stored(self, stage: int) -> int:
        """Return the stage from which one hears of time: without state, it hears what the one before it says."""
        return min(stage, len(self._pipeline.stateful) - 1)
