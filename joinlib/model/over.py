"""The window functions of a query, f(...) OVER (...); frozen and picklable.

    SELECT s.k AS k, s.v AS v, row_number() OVER (PARTITION BY s.k ORDER BY s.t DESC) AS rn  FROM s  QUALIFY rn <= 3

        columns    s.k, s.v, s.t     what is kept of a row, in this order in the blocks
        partition  s.k
        calls      $w0 = row_number() by (s.t DESC)
        qualify    $w0 <= 3
        select     k = s.k, v = s.v, rn = $w0

Law: values depend on the rows of the partition only, not on the order in which they came: rows that ORDER BY leaves
equal are in the order of all their columns, ascending, NULLs first.
"""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from joinlib.expr import Expr
from joinlib.model.inputs import WEIGHT

Ranking = Literal[
    "row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist", "lag", "lead", "session_start", "session_end",
]  # fmt: skip
Framed = Literal[
    "first_value", "last_value", "nth_value", "count", "sum", "avg", "min", "max",
    "var_pop", "var_samp", "stddev_pop", "stddev_samp", "bool_and", "bool_or",
]  # fmt: skip


@dataclass(frozen=True)
class OrderKey:
    """One column of ORDER BY."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Frame:
    """The rows around a row that its value is computed from: from `low` to `high`, both included.

    An end is how far from the row it is: negative means before it, None the end of the partition, 0 the row
    itself, or for "range" and "groups" all rows equal to it. "rows" counts rows, "groups" counts groups of equal
    rows, "range" is a difference of the column of ORDER BY, in units of its type: days of dates, µs of timestamps,
    units of the last digit of decimals. It is positive towards the end of the partition, also if that is descending.
    """

    unit: Literal["rows", "range", "groups"]
    low: int | float | None
    high: int | float | None


WHOLE = Frame("rows", None, None)  # without ORDER BY
RUNNING = Frame("range", None, 0)  # with ORDER BY


@dataclass(frozen=True)
class OverCall:
    """A window function."""

    name: str
    function: Ranking | Framed
    # Columns of rows, with their types; none: count(*). The second one of lag and lead is their default.
    arguments: tuple[tuple[str, pa.DataType], ...]
    type: pa.DataType
    sql: str
    order: tuple[OrderKey, ...]
    frame: Frame = WHOLE  # read by framed functions only
    ignore_nulls: bool = False  # of lag, lead, first_value, last_value, nth_value
    number: int = (
        1  # tiles of ntile; which row of nth_value, from 1; rows of lag and lead; µs of a session's gap
    )
    default: pa.Scalar | None = None  # of lag and lead, as a constant
    condition: str | None = None  # a BOOLEAN column: FILTER (WHERE ...)

    @property
    def backward(self) -> bool:
        """Whether a row's value depends only on rows that are before it or equal to it in ORDER BY."""
        if self.function in ("row_number", "rank", "dense_rank", "lag", "session_start"):
            return True
        if self.function in ("ntile", "percent_rank", "cume_dist", "lead", "session_end"):
            return False
        return self.frame.high is not None and self.frame.high <= 0


@dataclass(frozen=True)
class Over:
    """The window functions of one block; `select` and `qualify` read the columns and the calls."""

    columns: tuple[tuple[str, pa.DataType], ...]  # those of the blocks between $hash and $weight
    partition: tuple[str, ...]  # NULL is a value here; none: all rows are one partition
    calls: tuple[OverCall, ...]
    qualify: Expr | None
    select: tuple[tuple[str, Expr], ...]
    changes: bool = False  # rows end with a weight, which may be negative
    changelog: bool = False  # the result's rows end with a weight: -1 takes a row back, +1 gives it
    # The column whose event time tells which rows are final, see `settles`; read where the result is not a changelog:
    # None means that rows come out when the inputs are closed.
    time: str | None = None
    behind_us: int = 0  # how far behind the watermark this column may be
    # A call and a number: rows for which it is greater can be dropped where rows only come, because it only grows
    # and nothing else depends on them (`QUALIFY row_number() ... <= 3`).
    top: tuple[str, int] | None = None

    # Rows come when the watermark reaches the time in the first column, and go when it reaches that in the second;
    # None: they are there from the beginning, or forever. There are no calls then.
    present: tuple[str | None, str | None] | None = None

    @property
    def settles_by(self) -> str | None:
        """The column whose event time tells which rows are final; None if rows do not come out by time."""
        return None if self.changelog else self.time

    @property
    def cuts(self) -> bool:
        """Whether rows behind the top may be left out before their unit sees them: rows only come, and none is late.

        A late row, which the unit will drop, could leave out one that is not.
        """
        return self.top is not None and not self.changes and self.settles_by is None

    @property
    def final_close(self) -> bool:
        """Whether rows are emitted because the inputs are closed."""
        return not self.changelog

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result, without the weight."""
        return pa.schema([pa.field(name, value.type) for name, value in self.select])

    @property
    def emitted(self) -> pa.Schema:
        """The schema of the rows that units emit."""
        return self.schema.append(pa.field(WEIGHT, pa.int64())) if self.changelog else self.schema

    @property
    def sessions(self) -> bool:
        """Whether sessions are asked for: then rows are final when their session is."""
        return any(c.function.startswith("session") for c in self.calls)


def settles(over: Over, column: str) -> bool:
    """Return whether rows are final once the watermark has passed them in `column`, an event time.

    So it is if all functions go through the rows in the order of this time and look back only; sessions are final
    once the watermark has passed their ends.
    """
    for call in over.calls:
        first = call.order[0] if call.order else None
        if first is None or first.column != column or first.descending:
            return False
        if not call.backward and not call.function.startswith("session"):
            return False
    if over.sessions:
        return all(c.function.startswith("session") for c in over.calls)
    return True
