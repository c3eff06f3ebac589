"""Decides which runs and segments of a side are merged after a batch. Sealed runs are merged in one of two
ways:

                     where                                      sealed runs
    levels.py        `join.memory` is set, rows found by hash   are sorted by hash, ten per level become one
    neighbours.py    everywhere else                            keep their chains; one segment each, few runs

Sorted runs take 1.3 bytes of the executor's memory per row and chains 19, so state may be larger than
memory. But all rows are sorted and written once per level: while state fits in memory, chains need two
thirds of the time. Where rows are not found by their hashes, an order by hash is useless. The head's newest
segments are merged in either case.

`join.memory` may be set or removed at any restart: sorted runs remain sorted and continue in levels, and
unfinished sorts are completed.
"""

from joinlib.state.levels import Came, Levels
from joinlib.state.manifest import Merge
from joinlib.state.marks import Marks
from joinlib.state.neighbours import Neighbours
from joinlib.state.run import UnsortedRun
from joinlib.state.runs import Runs


class Merges:
    """The merges of one side's `runs`."""

    def __init__(self, runs: Runs, marks: Marks) -> None:
        self.runs, self._marks = runs, marks
        self._levels, self._neighbours = Levels(runs, marks), Neighbours(runs, marks)

    @property
    def levelled(self) -> bool:
        """Whether sealed runs are sorted and merged in levels."""
        return self.runs.tuning.levelled and self.runs.config.chained

    @property
    def going(self) -> tuple[Merge, ...]:
        """The unfinished merges."""
        return self._levels.merges

    def open(self, going: tuple[Merge, ...]) -> None:
        """Set the unfinished merges to those of a manifest."""
        self._levels.merges = going

    def expire(self) -> None:
        """Cancel merges whose input runs have all been dropped."""
        self._levels.expire()

    def advance(self, came: Came) -> None:
        """Do the merges that are due after a batch."""
        self._bury(came.batch)
        if self.levelled:
            self._newest(came.batch, others=1)
            self._advance(came)
        else:
            for live in self._loose():
                self._neighbours.whole(came.batch, live)
            self._newest(came.batch, others=1 + len(self._loose()))
            self._advance(came)
            most = self.runs.tuning.max_runs
            while len(self._loose()) > most and self._neighbours.lightest(came.batch, self._loose()):
                pass

    def _bury(self, batch: int) -> None:
        """Write runs with many dead rows anew; of runs that are merged anyway, drop those where all are dead."""
        busy = self._levels.busy
        dying = [live for live in self.runs.live if live.dead and live.run.number not in busy]
        due = [live for live in dying if isinstance(live, UnsortedRun) or live.dead == live.run.rows]
        buried = [self._neighbours.bury(batch, live) for live in due]
        if any(buried):
            self._marks.renumber(batch)

    def _newest(self, batch: int, others: int) -> None:
        if self.runs.head is not None:
            self._neighbours.newest(batch, self.runs.head, others)

    def _advance(self, came: Came) -> None:
        highest = max((live.run.level for live in self.runs.live), default=0)
        for level in range(1 + highest):
            self._levels.advance(came, level, begin=level > 0 or self.levelled)

    def _loose(self) -> list[UnsortedRun]:
        """Return the sealed runs whose rows are, and stay, in arrival order."""
        busy = self._levels.busy
        unsorted = [live for live in self.runs.live if isinstance(live, UnsortedRun)]
        return [live for live in unsorted if live.run.sealed and live.run.number not in busy]
