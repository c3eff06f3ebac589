"""Sealed runs become few: one by one they are put in the order of their hashes, then ten of a level become one of the next.

    level 0   a head that is sealed, rows as they came          ┐ sorted, alone
    level 1   1 1 1 1 1 1 1 1 1 1                               ┘ ┐ ten become one (UMJoin, section 3.1.2: a factor of 10)
    level 2   10 10 10                                            ┘

A merge writes a *piece* a batch: the rows whose hashes lie in the next of equal parts. Until the last one is written the old
runs are searched and nobody sees the new one, so a task that dies loses nothing and does nothing twice. Each row is written
once a level: log10(runs) times. Pieces are pure functions of (manifest, rows).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from joinlib import fault
from joinlib.state.manifest import NEVER, Merge, Run
from joinlib.state.marks import Marks
from joinlib.state.pieces import Piece, ends, pieces
from joinlib.state.run import LiveRun
from joinlib.state.runs import Runs

# Of pieces from level to level: large state is many files otherwise, small merges much in one batch.
_GROWTH = 4
_PARTS_OF_HOLD = 3  # a merged run, dropped whole, spans no more than this part of the time a row is kept


class Came(NamedTuple):
    """What a batch has brought, and let go."""

    batch: int
    bytes: int = 0  # of the rows that were inserted
    horizon: int = NEVER  # rows that are no later are not needed


class Levels:
    """The merges of one side's `runs` that go on; at most one of each level."""

    def __init__(self, runs: Runs, marks: Marks) -> None:
        self.runs, self.marks = runs, marks
        self.merges: tuple[Merge, ...] = ()

    @property
    def busy(self) -> set[int]:
        """The runs that are being merged, by number."""
        return {number for merge in self.merges for number in merge.runs}

    def expire(self) -> None:
        """Gives up merges none of whose runs is left."""
        for merge in self.merges:
            if not self.runs.among(merge.runs):
                self._end(merge)
                self.runs.retired.extend(merge.output.segments)

    def advance(self, came: Came, level: int, begin: bool) -> None:
        """Goes on with the merge of a level: a piece, and as much as came in, so that runs do not heap up.

        `begin`: or begins one that is due.
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
        """The next part of a merge; after the last one the old runs make room for the new one."""
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
        """The merge, once the piece is written."""
        output = merge.output
        added = self.runs.behind(output, self.runs.write(batch, "-sorted", piece.rows), piece.rows)
        self.runs.guides.make(added, piece.rows)
        self.runs.merged += added.bytes
        merge = replace(merge, output=replace(output, segments=(*output.segments, added)))
        if self.runs.config.marked:
            origin = self.marks.origin(batch, piece.runs, piece.numbers)
            merge = replace(merge, origins=(*merge.origins, origin))
        return merge

    def _finish(self, batch: int, merge: Merge, old: list[LiveRun]) -> None:
        """The new run takes the place of the old ones; their marks follow their rows."""
        if merge.output.rows:
            live = self.runs.add(merge.output, before=old[0])
            self.marks.move(merge.origins, old, live)
        for gone in old:
            self.runs.drop(gone)
        self._end(merge)
        self.marks.renumber(batch)

    def _end(self, merge: Merge) -> None:
        """Nothing of it goes on."""
        self.merges = tuple(m for m in self.merges if m is not merge)
        self.runs.retired.extend(merge.origins)


def due(
    runs: Sequence[Run], merges: Sequence[Merge], level: int, fanout: int, hold_us: int | None
) -> list[Run]:
    """The runs of `level` whose merge begins now; none while another of that level goes on.

    Runs that are wide alone, by a row with a wrong clock perhaps, hold nobody up: they are merged with each other.
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
    """From the earliest event time to the latest, µs; 0 where rows have none."""
    return max(r.high for r in runs) - min(r.low for r in runs)


def begun(number: int, level: int, old: Sequence[LiveRun], piece_bytes: int) -> Merge:
    """The merge of these runs of a level into run `number`, before its first piece. O(rows) where they are not sorted."""
    lows, highs = zip(*(ends(live) for live in old))
    low, high, size = min(lows), max(highs), sum(live.run.bytes for live in old)
    parts = min(-(-size // piece_bytes), high - low + 1)  # of one hash at least
    numbers = tuple(live.run.number for live in old)
    return Merge(numbers, Run(number, True, (), level + 1), low, high, parts)
