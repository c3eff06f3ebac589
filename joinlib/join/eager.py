"""LEFT, FULL, SEMI and ANTI joins of one batch of two inputs, without waiting: rows without a partner are emitted
at once, and taken back when one comes.

    a row l comes, no partner       +(l, NULL)          a row that is marked has a living partner
    a partner r comes               -(l, NULL) +(l, r)
    r is deleted, and it was the last   -(l, r) +(l, NULL)

Law: the sum of all that was emitted is the join of the rows that live. Counts of partners are not kept: whether
a deleted row was the last partner is asked of the state, with the first chunk of partners found as answer.

Semi and anti joins emit l alone: a semi join where the others emit -(l, NULL), an anti join the opposite.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joinlib.arrays import I32
from joinlib.join.outer import Mask
from joinlib.join.probe import Prober
from joinlib.join.rows import Nulls, Picked, Rows, Stored, Tuples
from joinlib.join.settled import Settle
from joinlib.model.inputs import WEIGHT
from joinlib.route.content import weights
from joinlib.state.run import LiveRun
from joinlib.state.side import Arrival

_SCHEMA = pa.schema([pa.field(WEIGHT, pa.int64())])


def eager(prober: Prober, batch: int, arrived: list[list[Arrival]], settle: Settle) -> Iterator[Tuples]:
    """Yield the join's changes and insert what came. `settle` is called for a side when its turn comes."""
    for me, parts in enumerate(arrived):
        for part in settle(me, parts):
            yield from _turn(prober, batch, me, part)


def _turn(prober: Prober, batch: int, me: int, part: Arrival) -> Iterator[Tuples]:
    """Process the changes of one side against the other, as that one is now."""
    kind, side, other = prober.operator.kind, prober.sides[me], prober.sides[1 - me]
    amounts = weights(part.rows)
    matched = np.zeros(part.rows.num_rows, np.bool_)
    losing: dict[LiveRun, list[I32]] = {}
    for found in prober.extend(Tuples(Picked(part.rows)), frozenset([me]), 1 - me, apart=True):
        new, stored = found.parts
        assert isinstance(new, Picked) and isinstance(stored, Stored) and new.positions is not None
        assert isinstance(stored.home, LiveRun)
        matched[new.positions] = True
        if kind in ("left", "full"):
            yield found
        if other.config.marked:
            came = amounts[new.positions] > 0
            fresh = other.mark(stored.home, _rows(stored, came))
            yield from _alone(prober, 1 - me, Stored(stored.home, fresh), 1 if kind == "semi" else -1)
            losing.setdefault(stored.home, []).append(_rows(stored, ~came))
    if side.config.marked:
        alone = np.flatnonzero(matched == (kind == "semi"))
        yield from _weighted(prober, me, Picked(part.rows, alone), amounts[alone])
    numbers = side.insert(batch, part)
    if side.config.marked and len(numbers):
        times = np.maximum(amounts, 0)
        side.mark(side.head, numbers[np.repeat(matched, times)])
    for live, rows in losing.items():
        lost = np.unique(np.concatenate(rows)).astype(np.int32)
        yield from _lost(prober, 1 - me, live, lost[live.living(lost)])


def _rows(stored: Stored, which: Mask) -> I32:
    return stored.numbers[which].astype(np.int32, copy=False)


def _lost(prober: Prober, at: int, live: LiveRun, rows: I32) -> Iterator[Tuples]:
    """Take the mark of the rows that have no partner any more, and emit what that means."""
    alone = rows[~_partnered(prober, at, live, rows)]
    if len(alone):
        prober.sides[at].unmark(live, alone)
        yield from _alone(prober, at, Stored(live, alone), -1 if prober.operator.kind == "semi" else 1)


def _partnered(prober: Prober, at: int, live: LiveRun, rows: I32) -> Mask:
    """Return which stored rows of side `at` have a partner in the other side, shape (rows,)."""
    found = np.zeros(len(rows), np.bool_)
    step = max(1, prober.pairs)
    for start in range(0, len(rows), step):
        some = Picked(_batch(live, rows[start : start + step]))
        for pairs in prober.extend(Tuples(some), frozenset([at]), 1 - at, apart=True):
            (new, _) = pairs.parts
            assert isinstance(new, Picked) and new.positions is not None
            found[start + new.positions] = True
            if found[start : start + step].all():
                break
    return found


def _batch(live: LiveRun, rows: I32) -> pa.RecordBatch:
    """Return stored rows as one batch."""
    return Tuples(Stored(live, rows)).batch(live.schema)


def _alone(prober: Prober, at: int, rows: Rows, weight: int) -> Iterator[Tuples]:
    """Yield rows of a side without a partner, all with one weight."""
    yield from _weighted(prober, at, rows, np.full(len(rows), weight, np.int64))


def _weighted(prober: Prober, at: int, rows: Rows, amounts: npt.NDArray[np.int64]) -> Iterator[Tuples]:
    """Yield rows of a side without a partner: alone, or with NULLs for the other side."""
    if not len(rows):
        return
    change = Picked(pa.record_batch([pa.array(amounts)], _SCHEMA))
    if prober.operator.kind in ("semi", "anti"):
        yield Tuples(change, rows)
    else:
        yield Tuples(change, rows, Nulls(prober.operator.sides[1 - at].schema, len(rows)))
