"""The order in which the prompt shows a result: that of ORDER BY, as far as it names columns of the result."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from joinlib.errors import SqlError
from joinlib.sql.depth import with_room
from joinlib.sql.parse import parse_query


def order_of(sql: str) -> list[tuple[str, bool]]:
    """Return what a query is ordered by: names or numbers of columns, and whether the greatest comes first."""
    try:
        order = with_room(lambda: parse_query(sql)).args.get("order")
    except SqlError:
        return []
    found = []
    for each in order.expressions if order is not None else ():
        if not isinstance(each.this, exp.Column | exp.Literal):
            break
        found.append((str(each.this.name), bool(each.args.get("desc"))))
    return found


def ordered(rows: pa.Table, order: Sequence[tuple[str, bool]]) -> pa.Table:
    """Return the rows in this order, as far as it is of their columns; NULL is less than any value."""
    names = {name.lower(): name for name in rows.column_names}
    for name, falling in reversed(order):
        number = int(name) - 1 if name.isdigit() else -1
        column = rows.column_names[number] if 0 <= number < rows.num_columns else names.get(name.lower())
        if column is None or pa.types.is_nested(rows.schema.field(column).type):
            continue
        by = pc.sort_indices(rows, [(column, "descending" if falling else "ascending")])
        nulls = 0 if falling else rows[column].null_count  # they are at the end
        rows = rows.take(by).take(np.roll(np.arange(rows.num_rows), nulls))
    return rows
