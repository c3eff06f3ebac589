"""Merges neighbouring segments of a run, so that a gather reads few, and sealed runs, so that a probe
visits few.

    a run     9 4 2 2 1  ─► 9 9       rows, their numbers and the index do not change
    two runs  9 4 | 9 3  ─► 25        one index for both, and the rows get new numbers

Rows stay in arrival order, so nothing is sorted, and a merge is completed in the batch that begins it.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

import numpy as np
import pyarrow as pa

from joinlib.state import segment
from joinlib.state.manifest import Run, Segment
from joinlib.state.marks import Marks
from joinlib.state.run import LiveRun, UnsortedRun
from joinlib.state.runs import Runs


class Neighbours:
    """Merges the segments of one side's `runs`, and the runs themselves."""

    def __init__(self, runs: Runs, marks: Marks) -> None:
        self.runs, self.marks = runs, marks

    def whole(self, batch: int, live: UnsortedRun) -> None:
        """Merge all segments of a run into one."""
        if len(live.run.segments) > 1:
            self._merge(batch, live, 0)

    def newest(self, batch: int, head: UnsortedRun, others: int) -> None:
        """While the head has too many segments, merge the newest; each row is rewritten O(log rows) times.

        others: the number of other segments that count toward the side's limit. This is lazy, so that a
        short query with large batches merges nothing; but gathering from many small segments costs more
        than merging them. Units begin at different batches, so that they do not all merge in the same one.
        """
        tuning = self.runs.tuning
        marks = tuning.marks_segments
        stagger = self.runs.place.stagger % (marks + 1)
        room = max(tuning.max_segments - others - marks - stagger, 1)
        while len(head.run.segments) > room or self._small(head) > tuning.merge_segments - stagger:
            self._merge(batch, head, _worth([s.rows for s in head.run.segments]))

    def lightest(self, batch: int, runs: Sequence[UnsortedRun]) -> bool:
        """Merge the two neighbouring runs with the fewest rows, with a new index.

        Return False if no two neighbours are small enough to be merged.
        """
        most = self.runs.tuning.merged_bytes
        pairs = [p for p in pairwise(runs) if p[0].run.bytes + p[1].run.bytes <= most]
        if not pairs:  # an Arrow array of strings is limited to 2 GiB, so more runs remain
            return False
        first, second = min(pairs, key=lambda p: p[0].run.rows + p[1].run.rows)
        self._join(batch, first, second)
        return True

    def bury(self, batch: int, live: LiveRun) -> bool:
        """Write a run anew without its dead rows, if these are more than a third; return whether. O(rows of the run).

        So each row is rewritten for every two that died, and state is at most one and a half times what lives.
        The marks must be renumbered afterwards.
        """
        if 3 * live.dead <= live.run.rows:
            return False
        kept = np.flatnonzero(live.living(np.arange(live.run.rows, dtype=np.int32)))
        if len(kept):
            rows = pa.concat_batches(live.batches).take(pa.array(kept))
            self.runs.merged += rows.nbytes
            empty = Run(self.runs.number(), live.run.sealed, ())
            added = self.runs.behind(empty, self.runs.write(batch, "-living", rows), rows)
            new = self.runs.add(replace(empty, segments=(added,)), before=live)
            new.index.begin()
            self.marks.give(new, np.arange(len(kept), dtype=np.int32), live.index.marks[kept])
        self.runs.drop(live)
        return True

    def _small(self, head: UnsortedRun) -> int:
        """Return how many of the newest segments, counted back from the last, are small."""
        small = self.runs.tuning.small_bytes
        return sum(1 for _ in takewhile(lambda s: s.bytes < small, reversed(head.run.segments)))

    def _merge(self, batch: int, live: UnsortedRun, start: int) -> None:
        """Merge the segments from index `start` on; row numbers and the index do not change."""
        kept, old = live.run.segments[:start], live.run.segments[start:]
        merged = replace(self._written(batch, live.batches[start:], old), token=old[-1].token)
        self.runs.retired.extend(old)
        live.replace(replace(live.run, segments=(*kept, merged)))

    def _join(self, batch: int, first: UnsortedRun, second: UnsortedRun) -> None:
        old = first.run.segments + second.run.segments
        merged = self._written(batch, first.batches + second.batches, old)
        merged = replace(merged, token=segment.chained(0, merged.digest))
        live = self.runs.add(Run(self.runs.number(), True, (merged,)), before=first)
        live.index.begin()
        both = np.concatenate([first.index.marks, second.index.marks])
        self.marks.give(live, np.arange(len(both), dtype=np.int32), both)
        self.runs.drop(first)
        self.runs.drop(second)
        self.marks.renumber(batch)

    def _written(self, batch: int, rows: list[pa.RecordBatch], old: tuple[Segment, ...]) -> Segment:
        """Write the concatenated rows of these segments as one segment, still without a token."""
        table = pa.concat_batches(rows)
        name, size, digest, content = self.runs.write(batch, "-merged", table)
        self.runs.merged += size
        low, high, level = min(s.low for s in old), max(s.high for s in old), max(s.level for s in old) + 1
        return Segment(name, table.num_rows, size, digest, 0, level, low, high, content)


def _worth(rows: list[int]) -> int:
    """Return the first segment from which a merge pays.

    This is the first that holds no more rows than all segments after it together, so each merge puts a row
    into a segment at least twice as large. 9 4 2 2 1: from the 4 on (4 <= 2 + 2 + 1). Where each segment
    holds more rows than all after it, there are few of them, and the newest two are merged.
    """
    behind = 0
    start = max(0, len(rows) - 2)
    for at in reversed(range(len(rows))):
        if 0 < rows[at] <= behind:
            start = at
        behind += rows[at]
    return start
