"""Decides when a group can no longer change.

Law: a group whose key is below that of the lowest event time still to come is final.

A key qualifies if it never falls while an event time of a stream rises: the time itself, date_trunc, CAST AS
DATE, the start of a window, plus an interval; or while what follows one rises: the starts and ends of windows that
a part below computes. `forward` knows how far behind the watermark that time may be when a joined row is emitted. It
does not for joins whose rows wait for the watermark; their groups are emitted when the inputs are closed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from joinlib.expr import Expr, Node, Ref
from joinlib.expr.behind import Rising
from joinlib.expr.cast import convert
from joinlib.expr.nodes import Call, Literal
from joinlib.expr.time import add_days, add_micros, add_months, floor_time
from joinlib.expr.types import is_time
from joinlib.expr.windows import tumble_start
from joinlib.model.grouping import Grouping, Release
from joinlib.sql import Query
from joinlib.sql.graph import inputs

_RISING = (floor_time, add_micros, add_days, add_months, convert, tumble_start)


def grouping_of(queries: Sequence[Query], times: Mapping[str, Rising]) -> Grouping | None:
    """Return the query's grouping, with the event time that makes a group final where there is one.

    `times`: the columns that follow event times. Groups that come out at once, be it for good or to be corrected, are
    forgotten when they are final, if their key is that of a window; others are not, since late rows would then be lost
    without need.
    """
    query = queries[-1]
    grouping = query.grouping
    if grouping is None or any(q.waits for q in queries):
        return grouping
    for name, value in query.select:
        column = _rises_with(value.node) if is_time(value.type) else None
        if column is None or column not in times or name not in {k.name for k in grouping.keys}:
            continue
        if grouping.final_close or _of_window(value.node, times[column]):
            return replace(
                grouping,
                release=Release(name, column, _type(value, query, column), value, times[column].behind_us),
            )
    return grouping


def _of_window(node: Node, rising: Rising) -> bool:
    return "$" in rising.family or (isinstance(node, Call) and node.kernel is tumble_start)


def _rises_with(node: Node) -> str | None:
    if isinstance(node, Ref):
        return node.name
    if isinstance(node, Call) and node.kernel in _RISING:
        first, *more = node.arguments
        return _rises_with(first) if all(isinstance(m, Literal) for m in more) else None
    return None


def _type(value: Expr, query: Query, column: str) -> pa.DataType:
    alias, _, name = column.partition(".")
    return next(
        s.table.schema.field(name).type for scan in query.scans for s in inputs(scan) if s.alias == alias
    )
