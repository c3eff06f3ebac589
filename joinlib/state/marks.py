"""Which rows of a side have been matched: bytes in the indexes, which are caches, and a log of segments, which is the truth.

    mark ─► index        a batch ─► a segment (run, row)        too many, or runs that became one ─► one segment of all

A row is named by its run and its number there. Where a run is made of others its marks are moved, and all are logged anew.
"""

import numpy as np
import pyarrow as pa

from joinlib.state import segment
from joinlib.state.manifest import Segment
from joinlib.state.run import I32, LiveRun
from joinlib.state.runs import Runs

_SCHEMA = pa.schema([pa.field("run", pa.int32()), pa.field("row", pa.int32())])
_NONE = np.zeros(0, np.int32)


class Marks:
    """Those of the rows of `runs`; `log` holds what batches before this one have marked, and this one once it is written."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.log: tuple[Segment, ...] = ()
        self._fresh: list[tuple[int, I32]] = []

    def open(self, log: tuple[Segment, ...]) -> None:
        """Makes the marks be those of `log`: read only if an index has others."""
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
        """Marks rows; returns those that were not marked before, each once."""
        live.index.begin()
        fresh = live.index.mark(rows)
        if len(fresh):
            self._fresh.append((live.run.number, fresh))
        return fresh

    @property
    def token(self) -> int:
        """Hash of the whole log; 0: there is none."""
        token = 0
        for s in self.log:
            token = segment.chained(token, s.digest)
        return token

    def write(self, batch: int) -> None:
        """Logs the batch's marks."""
        if self._fresh:
            self.log += (self._logged(batch, self._fresh),)
        if len(self.log) > self.runs.tuning.marks_segments:
            self._rewrite(batch)

    def renumber(self, batch: int) -> None:
        """Rows have got other runs and numbers, and the indexes know: the log says so too."""
        if self.log:
            self._rewrite(batch)

    def origin(self, batch: int, runs: I32, rows: I32) -> Segment:
        """Where each row of a merge's piece was."""
        return self._write(batch, "-origin", runs, rows)

    def move(self, origins: tuple[Segment, ...], old: list[LiveRun], new: LiveRun) -> None:
        """Marks follow their rows into the run that a merge has made of others."""
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
        """All live marks as one file."""
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
