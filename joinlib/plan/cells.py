"""Finds the band of a join without equality by whose values rows can be routed.

    ABS(a.x - b.x) <= 1     b.x - 1 <= a.x <= b.x + 1     cells of 8: a row has partners in one or two of them

A row is stored in a unit of its own cell and visits those of its partners, instead of half of all units. Cells are
four times as wide as what a row reaches, so that three rows of four and more visit one cell. Windows of time or
row numbers are no bands here: what comes together would lie in few cells.
"""

import math
from collections.abc import Sequence

from joinlib.expr import types as t
from joinlib.model.inputs import Cells
from joinlib.model.joins import IndexCondition

_WIDE = 4  # times what a row reaches
_LEAST = 2.0**-30  # width of cells of doubles: the numbers of narrower ones may not fit 64 bits


def cells_of(conditions: Sequence[IndexCondition]) -> Cells | None:
    """Return the cells of the first band among the conditions of a join; None if there is none."""
    for one in conditions:
        for other in conditions:
            same = (one.left, one.right) == (other.left, other.right)
            if same and one.sign in (">", ">=") and other.sign in ("<", "<="):
                width = _width(one, other.shift - one.shift)
                if width is not None:
                    return Cells((one.left, one.right), one.shift, other.shift, width)
    return None


def _width(band: IndexCondition, reach: float) -> int | float | None:
    kinds = band.left.type, band.right.type
    if reach < 0:  # nothing matches
        return None
    if all(map(t.is_integer, kinds)):
        return 1 << (_WIDE * int(reach)).bit_length() if reach < 2**56 else None
    if all(kind in (t.DOUBLE, t.FLOAT) for kind in kinds) and reach < 2.0**900:
        return max(2.0 ** math.frexp(_WIDE * reach)[1], _LEAST)
    return None
