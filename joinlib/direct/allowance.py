"""How much is run without Spark where Spark would have to start first: what is done sooner than it would be there.

    a batch of so many rows took so long ─► rows of the next one; rows that may wait

A batch begins small and doubles as long as it is quick, so that neither its time nor its memory runs away where rows have
many matches. One process joins about as many rows a second as Spark does on two cores.
"""

from dataclasses import dataclass, replace

_START_S = 5.0  # for Spark to start and to run a first batch
_QUICK_S, _SLOW_S = 0.25, 0.5  # a batch that takes less may have more rows; more, fewer
_LARGER = 8  # times the rows of a small batch that one may have at most
_PER_S = 1e6  # rows that are joined in a second, until one has been measured


@dataclass(frozen=True)
class Allowance:
    """What the next batches may have."""

    least: int  # rows of a batch that is small in any case
    rows: int  # of the next batch
    per_s: float = _PER_S  # rows that are joined in a second
    behind_s: float = 0.0  # for which batches have left rows waiting

    @staticmethod
    def first(least: int) -> "Allowance":
        """Return what the first batch may have."""
        return Allowance(least, least)

    @property
    def most(self) -> int:
        """The most rows of a batch, where slices cannot be divided further."""
        return _LARGER * self.least

    @property
    def waiting(self) -> float:
        """The most rows that may wait, those of the next batch included."""
        return self.per_s * _START_S if self.behind_s < 2 * _START_S else 0.0

    def after(self, rows: int, seconds: float, *, left: bool) -> "Allowance":
        """Return what the next batch may have, after one of so many rows has taken so long.

        `left`: whether it has left rows waiting. One that has not says nothing of what could be done.
        """
        if not left:
            return replace(self, behind_s=0.0)
        per_s, behind_s = rows / seconds, self.behind_s + seconds
        if seconds < _QUICK_S:  # most of it is what any batch takes, so larger ones join more rows a second
            twice = min(2 * self.rows, self.most)
            return replace(self, rows=twice, per_s=max(per_s, self.per_s), behind_s=behind_s)
        fewer = max(self.rows // 2, self.least) if seconds > _SLOW_S else self.rows
        return replace(self, rows=fewer, per_s=per_s, behind_s=behind_s)
