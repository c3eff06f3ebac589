"""The value of a subquery that may have one row only."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SqlError
from joinlib.expr import Expr
from joinlib.expr.nodes import Literal, call

_MESSAGE = "this subquery stands for a value, and has several rows; write max(...) or min(...) in it, or ORDER BY ... LIMIT 1"


def one(value: Expr, rows: Expr, *at: Expr) -> Expr:
    """Build $one(value, rows, line, column, view): the value, and an error at that place if there are several rows."""
    known = [w.node.value.as_py() for w in at if isinstance(w.node, Literal)]
    return call(_one, (value, rows), value.type, f"$one({value.sql}, {rows.sql})", *known)


def _one(value: Any, rows: Any, line: int, column: int, view: str) -> Any:
    most = rows if isinstance(rows, pa.Scalar) else pc.max(rows)
    if (most.as_py() or 0) > 1:
        raise SqlError(_MESSAGE, line, column, view)
    return value
