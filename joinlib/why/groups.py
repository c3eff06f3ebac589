"""In which groups rows count, and whether a group has come out."""

from collections.abc import Sequence

from joinlib.aggregate.groups import lowest_key, number
from joinlib.model.grouping import Grouping
from joinlib.plan.explain.texts import bare
from joinlib.why.few import Few
from joinlib.why.verdict import RowGroup


def groups(grouping: Grouping, few: Few) -> list[RowGroup]:
    """Return the group of each row, whose columns are the keys and what is aggregated."""
    having = grouping.having.sql if grouping.having is not None else ""
    columns = [few.rows.column(key.name).to_pylist() for key in grouping.keys]
    names = [bare(key.sql) for key in grouping.keys]
    keys = zip(*columns, strict=True) if columns else [()] * few.rows.num_rows
    return [RowGroup(tuple(zip(names, values, strict=True)), having) for values in keys]


def released(grouping: Grouping, few: Few, watermarks: Sequence[int]) -> list[bool]:
    """Return whether the group of each row had come out for good at a watermark, µs."""
    if grouping.release is None:
        return [False] * len(watermarks)
    keys = number(few.rows.column(grouping.release.key).combine_chunks()).to_pylist()
    bounds = (lowest_key(grouping.release, watermark) for watermark in watermarks)
    return [key is not None and key < bound for key, bound in zip(keys, bounds, strict=True)]
