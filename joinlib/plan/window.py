"""Plans count windows. Row i of one input matches rows i - n + 1 to i + n - 1 of another.

Row numbers are to count windows what event times are to time windows, so everything that time bounds do
(expiry, sealing, dropping whole runs) works for them too. The source numbers the rows, before any filter,
from its offset: a batch that is run again numbers its rows in the same way, and the answer does not depend on
how the stream was cut into batches.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from joinlib.errors import SpecError
from joinlib.expr.bound import Bound
from joinlib.model.inputs import ORDINAL
from joinlib.plan.source import SourceInput
from joinlib.sql import JoinNode, Scan


def counted(tree: JoinNode | Scan, rows: int, inputs: Mapping[str, SourceInput]) -> JoinNode | Scan:
    """Add the bounds of a window of `rows` rows to the tree.

    Raises:
        SpecError: if the query or its inputs do not support such a window.
    """
    if rows < 1:
        raise SpecError(f"join.window.rows is {rows}; it must be positive")
    if isinstance(tree, Scan):
        raise SpecError("join.window is for joins of streams, and this query joins none; leave it out")
    if tree.kind != "inner" or any(isinstance(c, JoinNode) for c in tree.children):
        raise SpecError(
            "join.window.rows is for INNER joins: a row without a partner would be emitted when enough rows"
            " have arrived, of an input that may have stopped; bound the time instead"
        )
    if tree.bounds:
        raise SpecError(
            "join.window.rows and a bound on event times: rows would expire by two clocks; leave one out"
            " (join.retention is such a bound too)"
        )
    scans = [c for c in tree.children if isinstance(c, Scan)]
    for scan in scans:
        if not inputs[scan.table.name].numbered:
            raise SpecError(
                "join.window.rows needs inputs whose rows have numbers (parquet files, generators), and"
                f" {scan.table.name} has none: rows of several partitions, or of text files, have no single"
                " order; bound the time instead"
            )
    pairs = combinations([f"{s.alias}.{ORDINAL}" for s in scans], 2)
    return replace(tree, bounds=tuple(Bound(a, b, 1 - rows, rows - 1) for a, b in pairs))
