"""LEFT, FULL, SEMI and ANTI joins of one batch of two inputs.

Rows that match are marked; a batch's marks are part of its log. A row without a mark is emitted once, when
the watermark or the end of the inputs guarantees that no partner can still arrive.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from joinlib.join.probe import Prober
from joinlib.join.rows import Nulls, Picked, Rows, Stored, Tuples
from joinlib.state.run import LiveRun
from joinlib.state.side import Arrival, Side

Mask = npt.NDArray[np.bool_]


def outer(prober: Prober, batch: int, arrived: list[list[Arrival]]) -> Iterator[Tuples]:
    """Yield the batch's matches and insert its rows.

    New left rows are probed against old right rows, then new right rows against all left rows.
    """
    kind = prober.operator.kind
    for me, part in ((me, part) for me, parts in enumerate(arrived) for part in parts):
        rows, side, other = part.rows, prober.sides[me], prober.sides[1 - me]
        matched = np.zeros(rows.num_rows, np.bool_)
        for found in prober.extend(Tuples(Picked(rows)), frozenset([me]), 1 - me, apart=other.config.marked):
            new, stored = found.parts
            assert isinstance(new, Picked) and isinstance(stored, Stored) and new.positions is not None
            matched[new.positions] = True
            fresh = _marked(other, stored) if other.config.marked else None
            if kind in ("left", "full"):
                yield found
            elif kind == "semi" and fresh is not None and len(fresh):
                yield Tuples(fresh)
        numbers = side.insert(batch, part)
        if side.config.marked:
            side.mark(side.head, numbers[matched])
            if kind == "semi" and matched.any():
                yield Tuples(Picked(rows, np.flatnonzero(matched)))


def _marked(side: Side, matched: Stored) -> Stored:
    """Mark rows of one run; return those that were not marked before."""
    live = matched.home
    assert isinstance(live, LiveRun)
    return Stored(live, side.mark(live, matched.numbers.astype(np.int32, copy=False)))


def alone(prober: Prober, side: int, rows: Rows) -> Tuples:
    """Return rows of a side as they are emitted when nothing matched them: alone, or with NULLs for the
    other side.
    """
    if prober.operator.kind == "anti":
        return Tuples(rows)
    return Tuples(rows, Nulls(prober.operator.sides[1 - side].schema, len(rows)))


def released(prober: Prober, side: Side, before: int, after: int) -> Iterator[Tuples]:
    """Yield unmatched rows that can no longer find a partner.

    before, after: the side's horizon before and after the batch, µs (see `watermark.horizon`).
    """
    number = prober.sides.index(side)
    for live, numbers in side.unmatched(before, after):
        for start in range(0, len(numbers), prober.pairs):
            yield alone(prober, number, Stored(live, numbers[start : start + prober.pairs]))
