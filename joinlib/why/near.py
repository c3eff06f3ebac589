"""The keys nearest to some that were looked for, among all that were seen."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.why.match import Nearest


class Near:
    """The nearest keys below and above some values, among all that were seen."""

    def __init__(self, values: pa.Array) -> None:
        self._values, self._below, self._above = values, dict[int, Any](), dict[int, Any]()

    def seen(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Look at the keys of some rows."""
        if not _ordered(column.type):
            return
        for at, value in enumerate(self._values):
            below = pc.max(column.filter(pc.less(column, value)))
            above = pc.min(column.filter(pc.greater(column, value)))
            for known, one, better in ((self._below, below, pc.greater), (self._above, above, pc.less)):
                if one.is_valid and (at not in known or better(one, known[at]).as_py()):
                    known[at] = one

    def found(self) -> Nearest:
        """Return the nearest keys by value."""
        return {
            value.as_py(): tuple(str(k[at].as_py()) for k in (self._below, self._above) if at in k)
            for at, value in enumerate(self._values)
        }


def _ordered(kind: pa.DataType) -> bool:
    numbers = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    return bool(numbers or pa.types.is_string(kind) or pa.types.is_temporal(kind))
