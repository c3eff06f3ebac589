"""The rows of each partition up to the top rank: where rows only come, no others can ever be in the result.

    QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 2        k v   a 3   a 1   b 5   a 2   a 1
                                                                            .    +     +     .    +

Law: top(rows) = top(tops of any parts of the rows). What is left keeps its order, up to rows that are equal.
"""

import numpy as np
import pyarrow as pa

from joinlib.aggregate.pile import Pile
from joinlib.arrays import I64
from joinlib.model.over import Over
from joinlib.over.layout import ordered, partitions, untied
from joinlib.route.content import Mask

_FEW = 0.75  # sorting rows to leave out fewer than the rest costs more than it saves


def top(rows: pa.RecordBatch, over: Over) -> pa.RecordBatch:
    """Return the rows up to the top rank (columns $hash and those of `over`, perhaps more). O(rows)."""
    few = leading(rows, over)
    return rows if few.all() else rows.filter(pa.array(few))


def leading(rows: pa.RecordBatch, over: Over) -> Mask:
    """Return which rows are up to the top rank."""
    assert over.top is not None
    parts = partitions(rows, over)
    found = np.ones(len(parts), np.bool_)
    some = np.flatnonzero(np.bincount(parts)[parts] > over.top[1])  # others have no rank behind it
    if len(some):
        _mark(found, rows, over, parts, some)
    return found


def _mark(found: Mask, rows: pa.RecordBatch, over: Over, parts: I64, some: I64) -> None:
    """Set for each row of whole partitions whether it is up to the top rank.

    Rows that ORDER BY leaves equal are told apart only where the top ends among them.
    """
    assert over.top is not None
    name, most = over.top
    call = next(call for call in over.calls if call.name == name)
    names = list(dict.fromkeys(key.column for key in call.order))
    layout = ordered(rows.select(names).take(pa.array(some)), parts[some], call.order)
    order = some[layout.rows]
    if call.function == "dense_rank":
        found[order] = layout.group - layout.group[layout.head] < most
        return
    few = layout.peer - layout.head < most
    if call.function == "row_number":
        across = few & (layout.last - layout.head > most)
        order = untied(rows, over, order, across, layout.peer)
        few &= np.arange(len(order)) - layout.head < most
    found[order] = few


class Top:
    """The rows up to the top rank of all that were added, found as they arrive."""

    def __init__(self, over: Over) -> None:
        self._over, self._seen = over, 0
        self._pile = Pile(lambda parts: top(pa.concat_batches(parts), over))
        self.pays = True  # whether it has left out so many rows that it is worth its work

    def add(self, rows: pa.RecordBatch) -> None:
        self._seen += rows.num_rows
        if self._pile.add(top(rows, self._over)):
            self.pays = self._pile.rows < _FEW * self._seen

    def rows(self) -> pa.RecordBatch:
        """Return the rows; there was one part at least."""
        return self._pile.merged()
