"""How much is run without Spark: little while Spark is there, and else what is done sooner than Spark would have started.

    a batch of so many rows took so long ─► rows of the next one; rows that may wait

A batch begins small and doubles as long as it is quick, so that neither its time nor its memory runs away where rows have
many matches.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

_FEW = 8  # small batches in which rows that wait are read while Spark is there; where more do, it is faster
_START_S = 5.0  # for Spark to start and to run a first batch
_SPARK = 0.6  # times the rows that one process joins in a second are what Spark joins on each core
_QUICK_S, _SLOW_S = 0.25, 0.5  # a batch that takes less may have more rows; more, fewer
_LARGER, _LARGEST = (
    8,
    32,
)  # times the rows of a small batch that one may have; that one slice of an input may have
_PER_S = 1e6  # rows that are joined in a second, until one has been measured


class Limits(NamedTuple):
    """What the next batch may have."""

    rows: int
    most: int  # where slices cannot be divided further
    waiting: float  # rows, those of the batch included


@dataclass(frozen=True)
class Allowance:
    """What batches have shown so far.

    Args:
        least: Rows of a batch that is small in any case.
        cores: Those that Spark would have.
        alone: Whether a batch has one level. What goes from level to level is held in memory.
        rows: Of the next batch, while Spark is not there.
        per_s: Rows that are joined in a second.
        behind_s: Seconds for which batches have left rows waiting.
    """

    least: int
    cores: int
    alone: bool
    rows: int
    per_s: float = _PER_S
    behind_s: float = 0.0

    @staticmethod
    def first(least: int, cores: int, *, alone: bool) -> "Allowance":
        """Return that of the first batch."""
        return Allowance(least, cores, alone, least)

    def limits(self, *, spark: bool) -> Limits:
        """Return what the next batch may have, while Spark is there or is not."""
        if spark:
            return Limits(self.least, self.least, _FEW * self.least)
        most = self.least * (_LARGEST if self.alone else _LARGER)
        return Limits(
            self.rows, most, self.per_s * self._worth_s if self.behind_s < 2 * self._worth_s else 0.0
        )

    @property
    def _worth_s(self) -> float:
        """The work, in seconds of one process, that Spark does not do sooner: it starts first."""
        faster = 1 - 1 / (_SPARK * self.cores)
        return _START_S / faster if faster > 0 else float("inf")

    def after(self, rows: int, seconds: float, *, left: bool) -> "Allowance":
        """Return what is known after a batch of so many rows has taken so long.

        `left`: whether it has left rows waiting. One that has not says nothing of what could be done.
        """
        if not left:
            return replace(self, behind_s=0.0)
        per_s, behind_s = rows / seconds, self.behind_s + seconds
        if seconds < _QUICK_S:  # most of it is what any batch takes, so larger ones join more rows a second
            twice = min(2 * self.rows, _LARGER * self.least)
            return replace(self, rows=twice, per_s=max(per_s, self.per_s), behind_s=behind_s)
        fewer = max(self.rows // 2, self.least) if seconds > _SLOW_S else self.rows
        return replace(self, rows=fewer, per_s=per_s, behind_s=behind_s)
