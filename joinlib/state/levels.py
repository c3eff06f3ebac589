"""Keeps sealed runs few: each is sorted by hash, then ten runs of a level are merged into one of the next.

    level 0   a sealed head, rows in arrival order   ┐ sorted, alone
    level 1   1 1 1 1 1 1 1 1 1 1                    ┘ ┐ ten become one (UMJoin, section 3.1.2: factor 10)
    level 2   10 10 10                                 ┘

A merge writes one *piece* per batch: the rows whose hashes lie in the next of several equal ranges. Until
the last piece is written, the old runs are searched and the new one is not visible, so a task that fails
loses nothing and repeats nothing. Each row is written once per level: log10(runs) times. Pieces are pure
functions of (manifest, rows).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from joinlib import fault
from joinlib.model.time import NEVER
from joinlib.state.manifest import Merge, Run
from joinlib.state.marks import Marks
from joinlib.state.pieces import Piece, ends, pieces
from joinlib.state.run import LiveRun
from joinlib.state.runs import Runs

# Growth of pieces per level: otherwise large state has many files, or small merges write much in one batch.
_GROWTH = 4
_PARTS_OF_HOLD = 3  # a merged run, which is dropped whole, spans at most 1/3 of the time a row is kept


class Came(NamedTuple):
    """The rows that a batch added and expired."""

    batch: int
    bytes: int = 0  # size of the inserted rows
    horizon: int = NEVER  # event time, µs; rows up to it are no longer needed


class Levels:
    """The unfinished merges of one side's `runs`, at most one per level."""

    def __init__(self, runs: Runs, marks: Marks) -> None:
        self.runs, self.marks = runs, marks
        self.merges: tuple[Merge, ...] = ()

    @property
    def busy(self) -> set[int]:
        """The numbers of the runs that are being merged."""
        return {number for merge in self.merges for number in merge.runs}

    def expire(self) -> None:
        """Cancel merges whose input runs have all been dropped."""
        for merge in self.merges:
            if not self.runs.among(merge.runs):
                self._end(merge)
                self.runs.retired.extend(merge.output.segments)

    def advance(self, came: Came, level: int, begin: bool) -> None:
        """Continue the merge of a level, or begin one.

        Each call writes one piece, and more if the batch was larger than a piece, so that runs do not pile
        up.

        begin: whether a merge that is due may begin.
        """
        tuning, hold = self.runs.tuning, self.runs.config.hold_us
        size = min(tuning.piece_bytes, tuning.seal_bytes * _GROWTH**level)
        for _ in range(1 + came.bytes // size):
            runs = [live.run for live in self.runs.live] if begin else []
            if old := due(runs, self.merges, level, tuning.fanout, hold):
                lives = self.runs.among(tuple(run.number for run in old))
                self.merges += (begun(self.runs.number(), level, lives, size),)
            for merge in [m for m in self.merges if m.output.level == level + 1]:
                self._go_on(came, merge, size)

    def _go_on(self, came: Came, merge: Merge, size: int) -> None:
        """Write the next piece of a merge; after the last one, replace the old runs by the new one."""
        self.merges = tuple(m for m in self.merges if m is not merge)
        old, time = self.runs.among(merge.runs), self.runs.config.time
        for piece in pieces(merge, old, time, came.horizon, size):
            merge = self._with(came.batch, merge, piece)
            fault.point("piece", came.batch)
        merge = replace(merge, done=merge.done + 1)
        self.merges += (merge,)
        if merge.done == merge.pieces:
            self._finish(came.batch, merge, old)
            fault.point("merged", came.batch)

    def _with(self, batch: int, merge: Merge, piece: Piece) -> Merge:
        """Write a piece and return the merge with it."""
        output = merge.output
        added = self.runs.behind(output, self.runs.write(batch, "-sorted", piece.rows), piece.rows)
        self.runs.guides.make(added, piece.rows)
        self.runs.merged += added.bytes
        merge = replace(merge, output=replace(output, segments=(*output.segments, added)))
        if self.runs.config.flagged:
            origin = self.marks.origin(batch, piece.runs, piece.numbers)
            merge = replace(merge, origins=(*merge.origins, origin))
        return merge

    def _finish(self, batch: int, merge: Merge, old: list[LiveRun]) -> None:
        """Replace the old runs by the new one; their marks follow their rows."""
        if merge.output.rows:
            live = self.runs.add(merge.output, before=old[0])
            self.marks.move(merge.origins, old, live)
        for gone in old:
            self.runs.drop(gone)
        self._end(merge)
        self.marks.renumber(batch)

    def _end(self, merge: Merge) -> None:
        """Remove the merge and retire its origin segments."""
        self.merges = tuple(m for m in self.merges if m is not merge)
        self.runs.retired.extend(merge.origins)


def due(
    runs: Sequence[Run], merges: Sequence[Merge], level: int, fanout: int, hold_us: int | None
) -> list[Run]:
    """Return the runs of `level` whose merge begins now; an empty list while the level has an unfinished
    merge.

    fanout: the number of runs that are merged. hold_us: how long rows are kept, µs; None is forever. Runs
    that span much time by themselves, perhaps due to a row with a wrong clock, do not block the others:
    they are merged with each other.
    """
    if any(m.output.level == level + 1 for m in merges):
        return []
    waiting = [r for r in runs if r.sealed and r.level == level]
    if not level:
        return waiting[:1]
    most = math.inf if hold_us is None else hold_us // _PARTS_OF_HOLD
    wide = [r for r in waiting if _span([r]) > most]
    oldest = [r for r in waiting if _span([r]) <= most][:fanout]
    if len(oldest) == fanout and _span(oldest) <= most:
        return oldest
    return wide[:fanout] if len(wide) >= fanout else []


def _span(runs: Sequence[Run]) -> int:
    """Return the time from the earliest event to the latest, µs; 0 where rows have no event time."""
    return max(r.high for r in runs) - min(r.low for r in runs)


def begun(number: int, level: int, old: Sequence[LiveRun], piece_bytes: int) -> Merge:
    """Return the merge of these runs into run `number`, without a piece so far. O(rows) if they are not
    sorted.

    piece_bytes: the target size of a piece.
    """
    lows, highs = zip(*(ends(live) for live in old))
    low, high, size = min(lows), max(highs), sum(live.run.bytes for live in old)
    parts = min(-(-size // piece_bytes), high - low + 1)  # each covers at least one hash
    numbers = tuple(live.run.number for live in old)
    return Merge(numbers, Run(number, True, (), level + 1), low, high, parts)
