"""The rows of one input of one join in one unit: a sequence of runs, the newest of which, the head, takes
inserts.

    open(manifest) ─► probe / insert / mark / unmatched ─► expire ─► commit ─► manifest

A *versioned* side can be asked what was there before the batch, also by whoever opens the batch's manifest later.
So what changes the numbers of rows, or drops some, is done at the beginning of the next batch:

    open(manifest) ─► tidy ─► delete / insert ─► probe ─► commit ─► manifest

Everything it writes is a pure function of (manifest, rows), so two attempts of a batch write the same bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from joinlib import fault
from joinlib.arrays import I32, I64
from joinlib.model.side import SideConfig
from joinlib.model.time import NEVER
from joinlib.model.tuning import Tuning
from joinlib.state import segment
from joinlib.state.levels import Came
from joinlib.state.location import Location
from joinlib.state.manifest import Run, Segment, SideManifest
from joinlib.state.marks import Marks
from joinlib.state.merges import Merges
from joinlib.state.run import LiveRun, Mask
from joinlib.state.runs import Runs

INDEX_BYTES = 21  # maximum size of a row in `Chains`
NO_ROWS = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Arrival:
    """Rows that arrive together.

    written: the segment that holds exactly these rows, if a map task has written one.
    """

    rows: pa.RecordBatch
    written: segment.Written | None = None
    stored: bool = True  # False: the rows only probe
    probing: bool = True  # False: the rows are only stored here; they probe in other units
    added: pa.RecordBatch | None = None  # of changes: the rows to insert, each as often as it came


class Side:
    """The state of one side, open in this process."""

    def __init__(self, config: SideConfig, place: Location, tuning: Tuning) -> None:
        self.config, self.tuning = config, tuning
        self._runs = Runs(config, place, tuning)
        self._marks = Marks(self._runs)
        self._merges = Merges(self._runs, self._marks)
        self.sorted = self._runs.sorted
        self._inserted: dict[int, int] = {}  # the first row of the last batch in each run that took inserts
        self._came = 0  # bytes inserted in the last batch
        self._horizon = NEVER

    def open(self, manifest: SideManifest) -> None:
        """Make index and rows those of `manifest`."""
        self._inserted, self._came, self._horizon = {}, 0, NEVER
        self._runs.open(manifest)
        self._merges.open(manifest.merges)
        self._marks.open(manifest.marks)
        if manifest.seen is not None:
            self._inserted[self.head.run.number] = manifest.seen
            self._came = sum(s.bytes for s in self._new)

    @property
    def runs(self) -> list[LiveRun]:
        """The runs, oldest first."""
        return self._runs.live

    @property
    def searched(self) -> list[LiveRun]:
        """The runs in which partners are looked for, oldest first."""
        return self.runs

    @property
    def head(self) -> LiveRun:
        """The run that `insert` last wrote to."""
        return self.runs[-1]

    def version(self, live: LiveRun, before: bool) -> Callable[[I32], Mask] | None:
        """Return what says which rows of a run are there, by their numbers; None: all are.

        before: whether as the side was before the last batch, otherwise as it is after it.
        """
        first = self._inserted.get(live.run.number) if before else None
        if not live.dead:
            return None if first is None else lambda rows: rows < first
        if first is not None:
            return lambda rows: live.lived(rows) & (rows < first)
        return live.lived if before else live.living

    def tidy(self, batch: int, horizon: int) -> None:
        """Do what the last batch has left: drop what is no later than `horizon`, µs; seal and merge runs.

        From here on, what was there before is what the last batch has left.
        """
        self.expire(horizon)
        self._marks.bury()
        self._settle(batch)
        self._inserted, self._came = {}, 0

    def insert(self, batch: int, part: Arrival) -> I32:
        """Store rows as a segment, unless they are one, and index them; return their numbers in the head."""
        rows = part.rows if part.added is None else part.added
        if not rows.num_rows:
            return NO_ROWS
        head = self._runs.head or self._runs.begin()
        written = part.written or self._runs.write(batch, "", rows)
        fault.point("segment", batch)
        self._came += written.bytes
        added = self._runs.behind(head.run, written, rows)
        if not part.written and written.bytes >= self.tuning.small_bytes:
            rows = segment.read(self._runs.place.segments, written, self.config.schema)  # mapped, not copied
        numbers = head.append(added, rows)
        self._inserted.setdefault(head.run.number, int(numbers[0]))
        fault.point("index", batch)
        return numbers.astype(np.int32)

    def mark(self, live: LiveRun, rows: I32) -> I32:
        """Mark rows as matched; return those that were not marked before, each once."""
        return self._marks.mark(live, rows)

    def delete(self, rows: pa.RecordBatch, counts: I64) -> I64:
        """Delete `counts` rows equal to each of `rows`, the oldest first; return how many were not there.

        rows: different from each other, in the columns of this side. counts: shape (rows,), at least 1.
        """
        missing = counts.copy()
        for live in self.runs:
            left = np.flatnonzero(missing)
            if not len(left):
                break
            positions, numbers = live.equal(rows.take(pa.array(left)))
            nth = np.arange(len(positions)) - np.searchsorted(positions, positions)
            taken = nth < missing[left[positions]]
            if taken.any():
                self._marks.kill(live, numbers[taken].astype(np.int32))
                missing -= np.bincount(left[positions[taken]], minlength=len(missing))
        return missing

    def unmark(self, live: LiveRun, rows: I32) -> None:
        """Take the marks of rows, each named once."""
        self._marks.unmark(live, rows)

    def unmatched(self, before: int, after: int) -> Iterator[tuple[LiveRun, I32]]:
        """Yield unmatched rows whose last possible partner is now late.

        These are rows with before < time <= after, and rows of this batch with time <= after; both limits
        in µs.
        """
        for live in self.runs:
            fresh_from = self._inserted.get(live.run.number, live.run.rows)
            if live.run.low > after or (live.run.high <= before and fresh_from == live.run.rows):
                continue
            due = live.index.marks[: live.run.rows] == 0
            if self.config.time is not None:
                times = live.times(self.config.time)
                due &= times <= after
                due[:fresh_from] &= times[:fresh_from] > before
            rows = np.flatnonzero(due).astype(np.int32)
            if len(rows):
                yield live, rows

    def expire(self, horizon: int) -> None:
        """Drop runs in which no row is later than `horizon`, µs.

        The horizon never decreases: a merge may already have left rows out.
        """
        self._horizon = horizon
        for live in [r for r in self.runs if r.run.high <= horizon]:
            self._runs.drop(live)
        self._merges.expire()

    def commit(self, batch: int) -> tuple[SideManifest, list[Segment]]:
        """Do the merges that are due; return the new manifest and the segments it no longer needs."""
        self._marks.write(batch)
        if not self.config.versioned:
            self._settle(batch)
        marks = self._marks.token
        for live in self.runs:
            live.finish(marks)
        runs = tuple(live.run for live in self.runs)
        seen = self._inserted.get(runs[-1].number) if self.config.versioned and runs else None
        manifest = SideManifest(runs, self._marks.log, self._runs.next, self._merges.going, seen)
        self._runs.forget(manifest)
        alive = {s.name for s in manifest.segments}
        # A merge that changed nothing writes a segment of the same name as its input.
        return manifest, [s for s in self._runs.retired if s.name not in alive]

    @property
    def _new(self) -> list[Segment]:
        """The segments that the last batch has added to a versioned side."""
        return [
            s
            for live in self.runs[-1:]
            for s, first in zip(live.run.segments, live.starts, strict=False)
            if first >= self._inserted.get(live.run.number, live.run.rows)
        ]

    def _settle(self, batch: int) -> None:
        self._seal(batch)
        self._merges.advance(Came(batch, self._came, self._horizon))

    def _seal(self, batch: int) -> None:
        head = self._runs.head
        if head is not None and (self._full(head.run) or self._old(head.run)):
            head.run = replace(head.run, sealed=True)
            fault.point("sealed", batch)

    def _full(self, head: Run) -> bool:
        size = head.bytes + head.rows * INDEX_BYTES
        return head.rows >= self.tuning.seal_rows or size >= self.tuning.seal_bytes

    def _old(self, head: Run) -> bool:
        hold = self.config.hold_us
        return hold is not None and head.low > NEVER and head.high - head.low > hold // self.tuning.spans

    def check(self) -> None:
        """Check every invariant, O(rows)."""
        for live in self.runs:
            live.check()
        # Only the newest run takes inserts.
        assert all(r.run.sealed for r in self.runs[:-1])
        counted = [r.run for r in self.runs if not r.run.sealed or not (r.run.level or self._merges.levelled)]
        most = self.tuning.max_segments + (len(self._new) if self.config.versioned else 0)
        assert sum(len(r.segments) for r in counted) + len(self._marks.log) <= most

    @property
    def merged_bytes(self) -> int:
        """The bytes written by merges in this batch, without marks."""
        return self._runs.merged

    @property
    def index_bytes(self) -> int:
        """The size of the indexes on the executor, in bytes."""
        return sum([live.index_bytes for live in self.runs]) + (
            self.sorted.bytes if self.config.compared else 0
        )
