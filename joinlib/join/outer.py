"""LEFT, FULL, SEMI and ANTI joins of one batch, of two inputs.

Rows that match are marked; a batch's marks are part of its log. A row without a mark comes out when the watermark, or the
end of the inputs, says that no partner can still come: then, and never again.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from joinlib.join.probe import Prober
from joinlib.join.rows import Nulls, Picked, Rows, Stored, Tuples
from joinlib.state.run import LiveRun
from joinlib.state.side import Part, Side

Mask = npt.NDArray[np.bool_]


def outer(prober: Prober, batch: int, arrived: list[list[Part]]) -> Iterator[Tuples]:
    """The batch's matches, new left rows against old right ones, then new right ones against all left ones; inserts."""
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
    """Marks rows of one run; gives those that were not marked before."""
    live = matched.home
    assert isinstance(live, LiveRun)
    return Stored(live, side.mark(live, matched.numbers.astype(np.int32, copy=False)))


def alone(prober: Prober, side: int, rows: Rows) -> Tuples:
    """Rows of a side as they come out when nothing matched them."""
    if prober.operator.kind == "anti":
        return Tuples(rows)
    return Tuples(rows, Nulls(prober.operator.sides[1 - side].schema, len(rows)))


def released(prober: Prober, side: Side, before: int, after: int) -> Iterator[Tuples]:
    """Unmatched rows that can no longer find a partner: their horizon moved from `before` to `after`."""
    number = prober.sides.index(side)
    for live, numbers in side.unmatched(before, after):
        for start in range(0, len(numbers), prober.pairs):
            yield alone(prober, number, Stored(live, numbers[start : start + prober.pairs]))
