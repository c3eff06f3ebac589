"""The groups of a query and what is computed of each; frozen and picklable.

    SELECT o.k AS k, 1 + sum(o.v * 2) AS s  ... GROUP BY o.k  HAVING count(*) > 1

        keys    $g0 = o.k
        calls   $a0 = sum($x0), $x0 = o.v * 2;  $a1 = count(*)
        having  $a1 > 1
        select  k = $g0, s = 1 + $a0

The join's units project joined rows to $g and $x; a finished group has the columns $g and $a. FILTER (WHERE c)
is in $x already: CASE WHEN c THEN x END, since an aggregate skips NULLs.
"""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from joinlib.expr import Expr

Function = Literal[
    "count", "sum", "min", "max", "avg", "min_by", "max_by", "collect_list", "collect_set", "percentile",
    "var_pop", "var_samp", "stddev_pop", "stddev_samp", "percentile_approx", "percentile_disc", "mode", "bit_and", "bit_or",
    "bit_xor", "skewness", "kurtosis", "corr", "covar_pop", "covar_samp", "regr_intercept",
    "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
]  # fmt: skip


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate function over the rows of a group; NULLs are skipped."""

    name: str
    function: Function
    argument: str | None  # a column of joined rows; None: count(*)
    source: pa.DataType  # type of the argument
    type: pa.DataType
    sql: str
    more: tuple[tuple[str, pa.DataType], ...] = ()  # columns after the argument: the y of min_by(x, y)
    distinct: bool = False  # each value of the group counts once
    fractions: tuple[float, ...] = ()  # of a percentile, from 0 to 1
    kept: tuple[tuple[str, str], ...] = ()  # columns of other calls' partials that are read as its own

    @property
    def arguments(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns of joined rows that it reads, with their types."""
        return () if self.argument is None else ((self.argument, self.source), *self.more)

    def partial(self, kind: str) -> str:
        """Return the column of partials that is its sum (s), its count of values (n) or its extreme (m)."""
        own = f"{self.name}.{kind}"
        return dict(self.kept).get(own, own)


@dataclass(frozen=True)
class GroupKey:
    """A column that all rows of a group share; NULL is a value here."""

    name: str
    type: pa.DataType
    sql: str
    kind: pa.DataType | None = None  # of the values, where they are packed (`joinlib.expr.packed`)


@dataclass(frozen=True)
class Release:
    """A key that never decreases while `column`, an event time, increases.

    Groups below `value` of the lowest time to come are final.
    """

    key: str
    column: str
    type: pa.DataType  # type of the column
    value: Expr
    behind_us: int = 0  # how far behind the watermark the column of a joined row may be

    def floor(self, watermark: int) -> int:
        """Return the lowest event time of joined rows still to come at this watermark, µs."""
        return watermark - self.behind_us


@dataclass(frozen=True)
class Grouping:
    """The groups of a query; `select` and `having` read finished groups."""

    keys: tuple[GroupKey, ...]
    calls: tuple[AggregateCall, ...]
    having: Expr | None
    select: tuple[tuple[str, Expr], ...]
    changelog: bool = False  # the result's rows end with a weight: -1 takes a group's row back, +1 gives it
    # None: groups are final when the inputs are closed; groups that come out at once are kept forever.
    release: Release | None = None
    changes: bool = False  # joined rows end with a weight, which may be negative
    derived: tuple[AggregateCall, ...] = ()  # computed from what `calls` keep, as a checkpoint has it

    @property
    def every(self) -> tuple[AggregateCall, ...]:
        """All calls that have a value."""
        return (*self.calls, *self.derived)

    @property
    def eager(self) -> bool:
        """Whether each group is emitted as soon as it exists (DISTINCT): nothing of it could change."""
        return not self.calls and not self.changelog

    @property
    def final_close(self) -> bool:
        """Whether groups are emitted because the inputs are closed."""
        return not self.changelog and not self.eager

    @property
    def read(self) -> frozenset[str]:
        """The columns that the select list and HAVING read."""
        values = [value for _, value in self.select] + ([] if self.having is None else [self.having])
        return frozenset(column for value in values for column in value.columns)

    @property
    def asked(self) -> tuple[AggregateCall, ...]:
        """The calls whose values are read; others are kept, as a checkpoint has them."""
        read = self.read
        return tuple(call for call in self.every if call.name in read)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result, without the weight."""
        return pa.schema([pa.field(name, value.type) for name, value in self.select])
