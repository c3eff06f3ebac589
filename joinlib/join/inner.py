"""The n-way inner join of one batch (UMJoin, equations 3 to 6).

Inputs take their turns in a fixed order: the batch of input i is probed against the inputs before it as they
are *after* the batch and those behind it as they were *before*, then inserted. The sum over i is exactly the
increment of the join.

That is also the order-consistent protocol of join-biclique (BiStream, section 3.2.3) at the grain of batches:
every unit takes rows in the one global order (batch, input). Of a pair whose rows are stored in different
units, only the later row finds the other: no pair is missed and none is found twice.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from joinlib.join.probe import Prober
from joinlib.join.rows import Picked, Tuples, concat
from joinlib.join.settled import Settle
from joinlib.state.side import Arrival


def inner(
    prober: Prober,
    batch: int,
    arrived: list[list[Arrival]],
    settle: Settle,
    orders: Sequence[Sequence[int]] | None = None,
) -> Iterator[Tuples]:
    """Yield the join's increment and insert `arrived`; the state is complete once the iterator is exhausted.

    settle: called for an input when its turn comes. orders: for each input, the other inputs in the order in
    which its rows probe them (default: input order).
    """
    for me, parts in enumerate(arrived):
        others = orders[me] if orders else [i for i in range(len(arrived)) if i != me]
        mine = settle(me, parts)
        for some in _probing(mine, prober.operator.index == "sorted"):
            for rows in prober.pieces(me, some):
                yield from _expand(prober, Tuples(Picked(rows)), frozenset([me]), others)
        for part in mine:
            if part.stored:
                prober.sides[me].insert(batch, part)


def _probing(parts: Sequence[Arrival], together: bool) -> list[pa.RecordBatch]:
    """Return the rows that probe.

    together: those that are stored here and those that only visit in one go, since every probe of sorted state
    begins with a search in each of its indexes.
    """
    rows = [part.rows for part in parts if part.probing]
    return [concat(rows, rows[0].schema)] if together and rows else rows


def _expand(
    prober: Prober, tuples: Tuples, bound: frozenset[int], remaining: Sequence[int]
) -> Iterator[Tuples]:
    """Extend `tuples` depth first, so that memory holds one bounded chunk for each input.

    A chunk without a match is dropped: nothing further is probed for it.
    """
    if not remaining:
        yield tuples
        return
    for longer in prober.extend(tuples, bound, remaining[0]):
        yield from _expand(prober, longer, bound | {remaining[0]}, remaining[1:])
