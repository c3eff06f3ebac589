"""Bags: what is kept of a group where sums are not enough, as values with how often each is there.

    values      min, max, percentile, collect_list ...: the values themselves
    distinct    count(DISTINCT x): the values; one that comes or goes is a row with weight +1 or -1 for the rest
    sums        sums and means of doubles: the limbs of their exact sum (`aggregate.exact`)
    squares     variances: the limbs of the sum, and of the sum of squares

Rows that come in append-only inputs only raise extremes, so min and max need no bag then, and of the bags of
min_by and max_by one row for each group is kept.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import pyarrow as pa

from joinlib.expr import types as t
from joinlib.model.grouping import AggregateCall, Grouping

CODE = "$code"
_VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


@dataclass(frozen=True)
class Bag:
    """What several calls may share."""

    kind: Literal["values", "distinct", "sums", "squares"]
    columns: tuple[tuple[str, pa.DataType], ...]  # of joined rows, in the order in which they are sorted
    required: int  # how many of them must not be NULL, the first ones
    rest: bool = False  # of the rows that a bag of distinct values gives, and not of joined rows
    end: Literal["first", "last", "all"] = "all"  # which value of a group is kept

    @property
    def stored(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns of values, as they are stored."""
        if self.kind in ("sums", "squares"):
            return ((CODE, pa.int32()),)
        return tuple((name, pa.int64() if t.is_float(kind) else kind) for name, kind in self.columns)

    @property
    def values(self) -> bool:
        """Whether the values themselves are kept, so that its size is theirs."""
        return self.kind in ("values", "distinct") and self.end == "all"


def distinct_of(call: AggregateCall) -> Bag | None:
    """Return the bag that finds out which values of the call's argument come and go."""
    columns = tuple(dict.fromkeys(call.arguments))
    return Bag("distinct", columns, len(columns)) if call.distinct else None


def bag_of(call: AggregateCall, changes: bool) -> Bag | None:
    """Return the bag that the call is computed from; None if columns of partials are enough."""
    columns, function = tuple(dict.fromkeys(call.arguments)), call.function
    if function in _VARIANCES:
        return Bag("squares", columns, 1, call.distinct)
    if function in ("sum", "avg"):
        return Bag("sums", columns, 1, call.distinct) if changes and t.is_float(call.source) else None
    if function in ("min_by", "max_by"):
        end: Literal["first", "last"] = "first" if function == "min_by" else "last"
        return Bag("values", columns[::-1], 1, end="all" if changes else end)
    if function == "count" or (function in ("min", "max") and not changes):
        return None
    return Bag("values", columns, len(columns))


@cache
def bags_of(grouping: Grouping) -> tuple[Bag, ...]:
    """Return the bags of a grouping, each once, in an order that depends on its calls only."""
    wanted = (bag for c in grouping.calls for bag in (distinct_of(c), bag_of(c, grouping.changes)))
    return tuple(dict.fromkeys(bag for bag in wanted if bag is not None))
