"""The rows since the last seal: what is inserted can be probed at once (SPO-Join, section 3.2).

    batches of 1 row    1 | 2 | 2 1 | 4 | 4 1 | 4 2 | 4 2 1 | 8        rows of the small runs after each

The paper inserts into a B+tree tuple by tuple. Here a batch is sorted and kept as a small run, runs of like size are merged,
and so one structure and one set of kernels serve both parts, and the arrays of a seal are those of a last merge.
Cost: O(log(rows / batch)) a row inserted, as many runs to probe.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from joinlib.index.comparisons import Asked, Column, Op
from joinlib.index.merging import merge
from joinlib.index.permuted import PAIRS, Pairs, Run, build

I64 = npt.NDArray[np.int64]

_FACTOR = 1  # a run is kept beside the one before if that has more rows than so many times its own


class Head:
    """Rows are numbered from 0 in the order of their arrival, and keep their numbers in the run that is sealed."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = tuple(ops)
        self.runs: list[Run] = []

    @property
    def rows(self) -> int:
        return sum(run.rows for run in self.runs)

    def insert(self, columns: Sequence[Column], equal: I64 | None = None) -> None:
        """Adds a batch; arguments as those of `build`."""
        self.runs.append(build(columns, self.ops, equal))
        while len(self.runs) > 1 and self.runs[-2].rows <= _FACTOR * self.runs[-1].rows:
            self._merge_last()

    def probe(
        self,
        columns: Sequence[Column] | Asked,
        equal: I64 | None = None,
        limit: int = PAIRS,
        alive: tuple[int, int] | None = None,
    ) -> Iterator[Pairs]:
        """As `Run.probe`."""
        for base, run in self._numbered():
            for probes, rows in run.probe(columns, equal, limit, _within(alive, base, run.rows)):
                rows += base  # the frame is handed on: nobody else holds it
                yield probes, rows

    def count(
        self,
        columns: Sequence[Column] | Asked,
        equal: I64 | None = None,
        alive: tuple[int, int] | None = None,
    ) -> I64:
        """As `Run.count`."""
        probes = columns.keys if isinstance(columns, Asked) else columns
        found = np.zeros(len(probes[0]), np.int64)
        for base, run in self._numbered():
            found += run.count(columns, equal, _within(alive, base, run.rows))
        return found

    def seal(self) -> Run:
        """All rows as one run; the head is empty after it."""
        if not self.runs:
            raise ValueError("nothing to seal: no batch has been inserted")
        while len(self.runs) > 1:
            self._merge_last()
        return self.runs.pop()

    def _merge_last(self) -> None:
        newer, older = self.runs.pop(), self.runs.pop()
        self.runs.append(merge(older, newer))

    def _numbered(self) -> Iterator[tuple[int, Run]]:
        base = 0
        for run in self.runs:
            yield base, run
            base += run.rows


def _within(alive: tuple[int, int] | None, base: int, rows: int) -> tuple[int, int] | None:
    return alive and (max(alive[0] - base, 0), min(alive[1] - base, rows))
