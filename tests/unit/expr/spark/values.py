"""Values as JSON has them, to write down and compare."""

from typing import Any

import pyarrow as pa

from joinlib.expr.rows import numbered


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def plain_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column's values as JSON has them; times are whole numbers."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_time(whole.type):
        return [str(v) for v in whole]
    return [plain(v) for v in whole.cast(numbered(whole.type)).to_pylist()]
