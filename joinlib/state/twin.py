"""A side of a self-join that stores nothing: its rows are those of another side, by other names.

    a   new rows probe b, which has what was there before them ─► are inserted
    b   the same rows probe a, which has them by now           ─► are there already

So of two rows of a pair the later one finds the earlier, and rows of one batch find each other, and themselves,
as rows of `b`: each pair once. Cost: names of columns, no rows.
"""

from joinlib.arrays import I32
from joinlib.model.side import SideConfig
from joinlib.model.tuning import Tuning
from joinlib.state.location import Location
from joinlib.state.run import LiveRun
from joinlib.state.side import NO_ROWS, Arrival, Side


class Twin(Side):
    """The rows of `other` under the names of this side. What it keeps of its own is always empty."""

    def __init__(self, config: SideConfig, place: Location, tuning: Tuning, other: Side) -> None:
        super().__init__(config, place, tuning)
        self._other = other
        self.sorted = other.sorted

    @property
    def searched(self) -> list[LiveRun]:
        """The runs of the other side, oldest first."""
        return [live.named(self.config.schema) for live in self._other.searched]

    def insert(self, batch: int, part: Arrival) -> I32:
        """Store nothing: the other side has the rows."""
        return NO_ROWS
