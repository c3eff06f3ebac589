"""What a stage joins, as a tree of frozen values. Inner joins of one key class are one n-way node.

    SELECT ... FROM a JOIN b USING (k) LEFT JOIN c USING (k)
        = Join("left", (Join("inner", (Leaf(0), Leaf(1))), Leaf(2)))

All nodes of a stage share one key class, so all rows of a key meet in one unit and no exchange is needed.
"""

from dataclasses import dataclass
from typing import Literal

from joinlib.expr import Expr

Kind = Literal["inner", "left", "full", "semi", "anti"]  # RIGHT is LEFT with its sides exchanged


@dataclass(frozen=True)
class Leaf:
    """An input of the stage, by its number."""

    input: int


@dataclass(frozen=True)
class Bound:
    """low <= right - left <= high, in microseconds, between two event-time columns; None: unbounded."""

    left: str  # "o.ordered_at"
    right: str  # "s.shipped_at"
    low_us: int | None
    high_us: int | None


@dataclass(frozen=True)
class Join:
    """One operator. All but "inner" have exactly two inputs; semi and anti emit the columns of the first only.

    A pair (n-tuple) matches when its keys are equal, every bound holds and `predicate` is true.
    `where` filters what comes out, null-extended rows included (a WHERE above an outer join).
    """

    kind: Kind
    inputs: tuple["Join | Leaf", ...]
    keys: tuple[tuple[str, ...], ...]  # for each input the columns that hold its key; same length everywhere
    bounds: tuple[Bound, ...]  # retention is among them
    predicate: Expr | None
    where: Expr | None
