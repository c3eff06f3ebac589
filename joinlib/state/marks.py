"""Flags of rows, matched or dead: bytes in the indexes (a cache), and a log of segments (the truth).

    mark ─► index        a batch ─► a segment (run, row)        too many, or runs merged ─► one segment of all

A row is identified by its run and its number there. When runs are merged, their marks are moved and the log
is rewritten. Where rows may be deleted or lose their mark, the log also holds the flags that a row has after
the batch, and the newest entry counts.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.arrays import I32
from joinlib.index.kernels import DEAD, DYING, MATCHED
from joinlib.state import segment
from joinlib.state.manifest import Segment
from joinlib.state.run import LiveRun
from joinlib.state.runs import Runs

_SCHEMA = pa.schema([pa.field("run", pa.int32()), pa.field("row", pa.int32())])
_FLAGS = _SCHEMA.append(pa.field("flags", pa.uint8()))
_NONE = np.zeros(0, np.int32)

Flags = npt.NDArray[np.uint8]


class Marks:
    """The marks of the rows of `runs`.

    `log` holds the marks of previous batches and, after `write`, those of the current one.
    """

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.log: tuple[Segment, ...] = ()
        self._fresh: list[tuple[int, I32]] = []

    def open(self, log: tuple[Segment, ...]) -> None:
        """Set the marks to those of `log`, which is read only if an index has other marks."""
        self.log, self._fresh = log, []
        token = self.token
        if all(live.index.marks_token == token for live in self.runs.live):
            self._count()
            return
        stored = [self._read(s) for s in log]
        for live in self.runs.live:
            live.index.begin()
            live.index.clear_marks()
            for runs, rows, flags in stored:
                here = runs == live.run.number
                live.index.flag(rows[here], flags[here])
            live.index.finish(live.run.token, token)
        self._count()

    def _count(self) -> None:
        """Count the dead rows of each run. O(rows), for sides that have any."""
        if self.runs.config.mutable:
            for live in self.runs.live:
                live.dead = int(np.count_nonzero(live.index.marks & (DEAD | DYING)))

    def mark(self, live: LiveRun, rows: I32) -> I32:
        """Mark rows; return those that were not marked before, each once."""
        live.index.begin()
        if self.runs.config.mutable:
            rows = np.unique(rows).astype(np.int32)
            fresh = rows[live.index.marks[rows] & MATCHED == 0]
            live.index.flag(fresh, live.index.marks[fresh] | np.uint8(MATCHED))
        else:
            fresh = live.index.mark(rows)
        self._touched(live, fresh)
        return fresh

    def unmark(self, live: LiveRun, rows: I32) -> None:
        """Take the marks of rows, each named once."""
        live.index.begin()
        live.index.flag(rows, live.index.marks[rows] & ~np.uint8(MATCHED))
        self._touched(live, rows)

    def kill(self, live: LiveRun, rows: I32) -> None:
        """Flag rows, each named once, as dead: they are not found any more, and merges leave them out.

        Rows of a versioned side are dying until the batch is over (`bury`): before it, they were there.
        """
        live.index.begin()
        flag = DYING if self.runs.config.versioned else DEAD
        live.index.flag(rows, live.index.marks[rows] | np.uint8(flag))
        live.dead += len(rows)
        self._touched(live, rows)

    def bury(self) -> None:
        """Flag the rows that were dying as dead."""
        for live in self.runs.live if self.runs.config.mutable else ():
            if live.dead and len(rows := np.flatnonzero(live.index.marks & DYING).astype(np.int32)):
                live.index.begin()
                live.index.flag(rows, live.index.marks[rows] & ~np.uint8(DYING) | np.uint8(DEAD))
                self._touched(live, rows)

    def _touched(self, live: LiveRun, rows: I32) -> None:
        if len(rows):
            self._fresh.append((live.run.number, rows))

    @property
    def token(self) -> int:
        """A hash of the whole log; 0 if it is empty."""
        token = 0
        for s in self.log:
            token = segment.chained(token, s.digest)
        return token

    def write(self, batch: int) -> None:
        """Log the batch's marks."""
        if self._fresh:
            self.log += (self._logged(batch, self._flagged()),)
        if len(self.log) > self.runs.tuning.marks_segments:
            self._rewrite(batch)

    def _flagged(self) -> list[tuple[int, I32, Flags]]:
        """Return the rows whose flags the batch has changed, by run, and the flags that they have now."""
        if not self.runs.config.mutable:
            return [(run, rows, np.ones(len(rows), np.uint8)) for run, rows in self._fresh]
        found = []
        for live in self.runs.live:
            touched = [rows for run, rows in self._fresh if run == live.run.number]
            if touched:
                rows = np.unique(np.concatenate(touched)).astype(np.int32)
                found.append((live.run.number, rows, live.index.marks[rows]))
        return found

    def renumber(self, batch: int) -> None:
        """Rewrite the log after rows got new runs and numbers, which the indexes already have."""
        if self.log:
            self._rewrite(batch)

    def origin(self, batch: int, runs: I32, rows: I32) -> Segment:
        """Write the previous run and number of each row of a merge's piece."""
        return self._write(batch, "-origin", [runs, rows])

    def move(self, origins: tuple[Segment, ...], old: list[LiveRun], new: LiveRun) -> None:
        """Move the marks of the `old` runs to their rows in `new`, the result of a merge."""
        new.index.begin()
        new.index.clear_marks()
        first = 0
        for origin in origins:
            runs, rows = self._columns(origin, _SCHEMA)
            for live in old:
                here = np.flatnonzero(runs == live.run.number)
                self.give(new, (first + here).astype(np.int32), live.index.marks[rows[here]])
            first += origin.rows

    def give(self, live: LiveRun, rows: I32, flags: Flags) -> None:
        """Give rows of a new run the flags that they had in the old one."""
        some = flags > 0
        live.index.flag(rows[some], flags[some])
        live.dead += int(np.count_nonzero(flags & (DEAD | DYING)))

    def _rewrite(self, batch: int) -> None:
        """Write all live marks as one segment."""
        self._fresh = []
        alive = []
        for live in self.runs.live:
            rows = np.flatnonzero(live.index.marks).astype(np.int32)
            alive.append((live.run.number, rows, live.index.marks[rows]))
        self.runs.retired.extend(self.log)
        self.log = (self._logged(batch, alive),) if any(len(rows) for _, rows, _ in alive) else ()

    def _logged(self, batch: int, flagged: list[tuple[int, I32, Flags]]) -> Segment:
        runs = np.concatenate([_NONE, *(np.full(len(rows), run, np.int32) for run, rows, _ in flagged)])
        rows = np.concatenate([_NONE, *(rows for _, rows, _ in flagged)])
        if not self.runs.config.mutable:
            return self._write(batch, "-marks", [runs, rows])
        flags = np.concatenate([np.zeros(0, np.uint8), *(flags for _, _, flags in flagged)])
        return self._write(batch, "-marks", [runs, rows, flags])

    def _write(self, batch: int, kind: str, columns: list[npt.NDArray[Any]]) -> Segment:
        schema = _SCHEMA if len(columns) == len(_SCHEMA) else _FLAGS
        made = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        name, size, digest, content = self.runs.write(batch, kind, pa.record_batch(made, schema))
        return Segment(name, len(columns[0]), size, digest, 0, 0, content=content)

    def _read(self, marks: Segment) -> tuple[I32, I32, Flags]:
        if self.runs.config.mutable:
            runs, rows, flags = self._columns(marks, _FLAGS)
            return runs, rows, flags
        runs, rows = self._columns(marks, _SCHEMA)
        return runs, rows, np.ones(len(rows), np.uint8)

    def _columns(self, stored: Segment, schema: pa.Schema) -> list[npt.NDArray[Any]]:
        folder = self.runs.place.segments
        segment.verify(folder, stored)
        return [c.to_numpy() for c in segment.read(folder, stored, schema).columns]
