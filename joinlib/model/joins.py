"""The joins of a stage, as a tree of frozen values. Inner joins of one key class are one n-way node.

    SELECT ... FROM a JOIN b USING (k) LEFT JOIN c USING (k)
        = Join("left", (Join("inner", (Leaf(0), Leaf(1))), Leaf(2)))

All nodes of a stage share one key class, so all rows of a key meet in one unit and no exchange is needed. The
inner join of two inputs may have no key at all: then rows are routed by join-biclique (`route.biclique`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from joinlib.expr import Expr
from joinlib.expr.bound import Bound
from joinlib.model.inputs import InputPlan

if TYPE_CHECKING:
    from joinlib.spec.inputs import CacheMode

# RIGHT is LEFT with its sides swapped; upsert has one input and keeps the last row of each key
Kind = Literal["inner", "left", "full", "semi", "anti", "upsert"]

Index = Literal["hash", "sorted", "scan"]  # by key hash, by order, or every row


@dataclass(frozen=True)
class Leaf:
    """An input of the stage, by its number. As the whole tree of a stage: all its inputs, which have the same columns."""

    input: int


@dataclass(frozen=True)
class IndexCondition:
    """A comparison `left sign right + shift` that holds for every pair that matches.

    An index finds pairs by it, and possibly some that do not match.
    """

    left: Expr  # over the first input, in the type of the comparison
    sign: str  # < <= > >= <>
    right: Expr  # over the second input
    shift: int | float = 0


@dataclass(frozen=True)
class Join:
    """One operator. All but "inner" have exactly two inputs.

    Semi and anti emit the columns of the first input only. A pair (n-tuple) matches when its keys are
    equal, every bound holds and `predicate` is true. `where` filters the rows emitted, null-extended ones
    included (a WHERE above an outer join).
    """

    kind: Kind
    inputs: tuple["Join | Leaf", ...]
    keys: tuple[tuple[str, ...], ...]  # for each input, its key columns; all of the same length
    bounds: tuple[Bound, ...]  # including retention
    predicate: Expr | None
    where: Expr | None
    index_conditions: tuple[
        IndexCondition, ...
    ] = ()  # for an inner join without a key: what an index finds, including all bounds
    residual: Expr | None = None  # the part of the predicate left to check; with a key, all of it
    everywhere: bool = False  # in an anti join without a key: every unit has all rows of the second input


@dataclass(frozen=True)
class Caching:
    """How much of a table is cached, and for how long."""

    mode: "CacheMode" = "full"  # full: the whole table; incremental: the rows looked up; auto: by its size
    refresh_us: int | None = None  # how often it is reloaded (full), or when rows expire (incremental)
    budget: int = 1 << 28  # bytes, for all units together
    # Whether the rows looked up do not all fit, so that each is better kept in one unit; None: not decided yet
    scarce: bool | None = None


@dataclass(frozen=True)
class Range:
    """A range condition on rows of a table: `low` <= x and y <= `high`.

    `low` and `high` are columns of the table; None means unbounded.
    """

    low: str | None
    x: Expr | None
    high: str | None
    y: Expr | None


@dataclass(frozen=True)
class Lookup:
    """A table that is looked up for the rows of the tree, or of the lookup before."""

    kind: Literal["inner", "left", "semi", "anti"]
    table: InputPlan  # how the table is read; its keys equal `probe`, position by position
    probe: tuple[Expr, ...]
    key_columns: tuple[str | None, ...]  # the table's column that each key is; None: it is computed
    predicate: Expr | None  # decides what matches
    where: Expr | None  # decides what is emitted
    caching: Caching
    range: Range | None = None  # finds candidates only: the predicate includes it

    @property
    def reads(self) -> tuple[Expr, ...]:
        """All expressions that it evaluates on joined rows."""
        return (*self.asked, *(e for e in (self.predicate, self.where) if e is not None))

    @property
    def asked(self) -> tuple[Expr, ...]:
        """What is looked for, over joined rows."""
        ends = (self.range.x, self.range.y) if self.range else ()
        return (*self.probe, *(e for e in ends if e is not None))
