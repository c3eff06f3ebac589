"""What a stage joins, as a tree of frozen values. Inner joins of one key class are one n-way node.

    SELECT ... FROM a JOIN b USING (k) LEFT JOIN c USING (k)
        = Join("left", (Join("inner", (Leaf(0), Leaf(1))), Leaf(2)))

All nodes of a stage share one key class, so all rows of a key meet in one unit and no exchange is needed. The inner join of
two inputs may have no key at all: then rows meet as join-biclique has it (`route.biclique`).
"""

from dataclasses import dataclass
from typing import Literal

from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.route.config import InputPlan

Kind = Literal["inner", "left", "full", "semi", "anti"]  # RIGHT is LEFT with its sides exchanged


CacheMode = Literal["full", "incremental", "auto"]
Index = Literal["hash", "sorted", "scan"]  # by key hash, by order, or every row


@dataclass(frozen=True)
class Leaf:
    """An input of the stage, by its number."""

    input: int


@dataclass(frozen=True)
class Meet:
    """`left sign right + shift` of every pair that matches: so an index finds it, and perhaps some that do not match."""

    left: Expr  # of the first input, in the type in which they meet
    sign: str  # < <= > >= <>
    right: Expr  # of the second
    shift: int | float = 0


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
    meets: tuple[Meet, ...] = ()  # an inner join without a key: what an index finds, all bounds among it
    residual: Expr | None = None  # what of the predicate is left to check; with a key all of it


@dataclass(frozen=True)
class Caching:
    """What is kept of a table, and for how long."""

    mode: CacheMode = "full"  # full: all of it; incremental: what was asked for; auto: by its size
    refresh_us: int | None = None  # full: loaded anew so often; incremental: void so long after; None: never
    budget: int = 1 << 28  # bytes, over all units


@dataclass(frozen=True)
class Range:
    """Rows of a table hold points: `low` <= x and y <= `high`, which are columns of it; None: unbounded."""

    low: str | None
    x: Expr | None
    high: str | None
    y: Expr | None


@dataclass(frozen=True)
class Lookup:
    """A table that is looked up for what the tree, and the lookups before, give."""

    kind: Literal["inner", "left", "semi", "anti"]
    table: InputPlan  # how its rows become columns; its keys equal `probe`, position by position
    probe: tuple[Expr, ...]
    key_columns: tuple[str | None, ...]  # of each key the table's own column that it is; None: it is computed
    predicate: Expr | None  # decides what matches
    where: Expr | None  # decides what comes out
    caching: Caching
    range: Range | None = None  # only finds candidates: the predicate says the same

    @property
    def reads(self) -> tuple[Expr, ...]:
        """All that it evaluates on joined rows."""
        ends = (self.range.x, self.range.y) if self.range else ()
        return (*self.probe, *(e for e in (self.predicate, self.where, *ends) if e is not None))
