"""Marks of rows that have been matched: bytes in the indexes (a cache), and a log of segments (the truth).

    mark ─► index        a batch ─► a segment (run, row)        too many, or runs merged ─► one segment of all

A row is identified by its run and its number there. When runs are merged, their marks are moved and the log
is rewritten.
"""

import numpy as np
import pyarrow as pa

from joinlib.arrays import I32
from joinlib.state import segment
from joinlib.state.manifest import Segment
from joinlib.state.run import LiveRun
from joinlib.state.runs import Runs

_SCHEMA = pa.schema([pa.field("run", pa.int32()), pa.field("row", pa.int32())])
_NONE = np.zeros(0, np.int32)


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
            return
        stored = [self._read(s) for s in log]
        for live in self.runs.live:
            live.index.begin()
            live.index.clear_marks()
            for runs, rows in stored:
                live.index.mark(rows[runs == live.run.number])
            live.index.finish(live.run.token, token)

    def mark(self, live: LiveRun, rows: I32) -> I32:
        """Mark rows; return those that were not marked before, each once."""
        live.index.begin()
        fresh = live.index.mark(rows)
        if len(fresh):
            self._fresh.append((live.run.number, fresh))
        return fresh

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
            self.log += (self._logged(batch, self._fresh),)
        if len(self.log) > self.runs.tuning.marks_segments:
            self._rewrite(batch)

    def renumber(self, batch: int) -> None:
        """Rewrite the log after rows got new runs and numbers, which the indexes already have."""
        if self.log:
            self._rewrite(batch)

    def origin(self, batch: int, runs: I32, rows: I32) -> Segment:
        """Write the previous run and number of each row of a merge's piece."""
        return self._write(batch, "-origin", runs, rows)

    def move(self, origins: tuple[Segment, ...], old: list[LiveRun], new: LiveRun) -> None:
        """Move the marks of the `old` runs to their rows in `new`, the result of a merge."""
        new.index.begin()
        new.index.clear_marks()
        first = 0
        for origin in origins:
            runs, rows = self._read(origin)
            for live in old:
                here = np.flatnonzero(runs == live.run.number)
                new.index.mark((first + here[live.index.marks[rows[here]] > 0]).astype(np.int32))
            first += origin.rows

    def _rewrite(self, batch: int) -> None:
        """Write all live marks as one segment."""
        alive = [
            (live.run.number, np.flatnonzero(live.index.marks).astype(np.int32)) for live in self.runs.live
        ]
        self.runs.retired.extend(self.log)
        self.log = (self._logged(batch, alive),) if any(len(rows) for _, rows in alive) else ()

    def _logged(self, batch: int, marked: list[tuple[int, I32]]) -> Segment:
        runs = [np.full(len(rows), run, np.int32) for run, rows in marked]
        return self._write(
            batch, "-marks", np.concatenate([_NONE, *runs]), np.concatenate([_NONE, *(r for _, r in marked)])
        )

    def _write(self, batch: int, kind: str, runs: I32, rows: I32) -> Segment:
        marks = pa.record_batch([pa.array(runs, pa.int32()), pa.array(rows, pa.int32())], _SCHEMA)
        name, size, digest, content = self.runs.write(batch, kind, marks)
        return Segment(name, len(rows), size, digest, 0, 0, content=content)

    def _read(self, marks: Segment) -> tuple[I32, I32]:
        folder = self.runs.place.segments
        segment.verify(folder, marks)
        batch = segment.read(folder, marks, _SCHEMA)
        return batch.column("run").to_numpy(), batch.column("row").to_numpy()
