"""Neighbours become one: segments of a run, so that a gather visits few, and sealed runs, so that a probe asks few.

    a run     9 4 2 2 1  ─► 9 9       rows, their numbers and the index stay
    two runs  9 4 | 9 3  ─► 25        one index for both, and the rows have other numbers

Rows stay in the order in which they came, so nothing is sorted, and a merge is done in the batch that begins it.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

import numpy as np
import pyarrow as pa

from joinlib.state import segment
from joinlib.state.manifest import Run, Segment
from joinlib.state.marks import Marks
from joinlib.state.run import UnsortedRun
from joinlib.state.runs import Runs


class Neighbours:
    """Merges the segments of one side's `runs`, and the runs themselves."""

    def __init__(self, runs: Runs, marks: Marks) -> None:
        self.runs, self.marks = runs, marks

    def whole(self, batch: int, live: UnsortedRun) -> None:
        """All segments of a run become one."""
        if len(live.run.segments) > 1:
            self._merge(batch, live, 0)

    def newest(self, batch: int, head: UnsortedRun, others: int) -> None:
        """While there are too many segments, the newest become one: O(log rows) rewrites of each row.

        Lazy, so that a short run of large batches merges nothing; but where each is small a gather from many costs more
        than the merge. Units begin at different batches, so that they do not all merge in one. `others`: segments that
        take of the room of the head's.
        """
        tuning = self.runs.tuning
        marks = tuning.marks_segments
        stagger = self.runs.place.stagger % (marks + 1)
        room = max(tuning.max_segments - others - marks - stagger, 1)
        while len(head.run.segments) > room or self._small(head) > tuning.merge_segments - stagger:
            self._merge(batch, head, _worth([s.rows for s in head.run.segments]))

    def lightest(self, batch: int, runs: Sequence[UnsortedRun]) -> bool:
        """The two neighbours with the fewest rows become one, with an index of its own; False: none may."""
        most = self.runs.tuning.merged_bytes
        pairs = [p for p in pairwise(runs) if p[0].run.bytes + p[1].run.bytes <= most]
        if not pairs:  # an Arrow array of strings ends at 2 GiB: then there are more runs to search
            return False
        first, second = min(pairs, key=lambda p: p[0].run.rows + p[1].run.rows)
        self._join(batch, first, second)
        return True

    def _small(self, head: UnsortedRun) -> int:
        """How many of the newest segments are small."""
        small = self.runs.tuning.small_bytes
        return sum(1 for _ in takewhile(lambda s: s.bytes < small, reversed(head.run.segments)))

    def _merge(self, batch: int, live: UnsortedRun, start: int) -> None:
        """The segments from `start` on become one; row numbers and index stay."""
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
        live.index.mark(np.flatnonzero(both).astype(np.int32))
        self.runs.drop(first)
        self.runs.drop(second)
        self.marks.renumber(batch)

    def _written(self, batch: int, rows: list[pa.RecordBatch], old: tuple[Segment, ...]) -> Segment:
        """The rows of these segments as one, one behind the other; without a token."""
        table = pa.concat_batches(rows)
        name, size, digest, content = self.runs.write(batch, "-merged", table)
        self.runs.merged += size
        low, high, level = min(s.low for s in old), max(s.high for s in old), max(s.level for s in old) + 1
        return Segment(name, table.num_rows, size, digest, 0, level, low, high, content)


def _worth(rows: list[int]) -> int:
    """From which segment on a merge pays: the first that holds no more rows than all behind it together.

    A row is then in a segment twice as large after each merge. 9 4 2 2 1: from the 4 on (4 <= 2 + 2 + 1). Where each
    segment holds more than all behind it there are few of them, and the newest two are merged.
    """
    behind = 0
    start = max(0, len(rows) - 2)
    for at in reversed(range(len(rows))):
        if 0 < rows[at] <= behind:
            start = at
        behind += rows[at]
    return start
