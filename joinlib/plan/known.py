"""What is known of the rows of a part of the query, from what is known of the inputs that it reads.

joins    as many rows as the largest of their inputs
groups   a tenth of that, each with a key of its own; one without keys
maps     what they read: the columns that they pass on keep their values
"""

from collections.abc import Mapping, Sequence

from joinlib.model.maps import Map
from joinlib.model.stage import AnyStage, GroupStage, read_once
from joinlib.plan.source import InputStatistics, SourceInput

_GROUPS = 0.1  # groups of a row


def of_stage(stages: Sequence[AnyStage], number: int, inputs: Mapping[str, SourceInput]) -> InputStatistics:
    """Return what is known of the rows of a stage."""
    rows, stage = _rows(stages, number, inputs), stages[number]
    if rows is None or not isinstance(stage, GroupStage) or len(stage.grouping.keys) != 1:
        return InputStatistics(rows)
    (key,) = stage.grouping.keys
    return InputStatistics(rows, {n: rows for n, e in stage.grouping.select if e.column == key.name})


def _rows(stages: Sequence[AnyStage], number: int, inputs: Mapping[str, SourceInput]) -> float | None:
    stage = stages[number]
    read = read_once(stage)
    every = (
        inputs[plan.source].statistics.rows if plan.upstream is None else _rows(stages, plan.upstream, inputs)
        for plan in read
    )
    found = [rows for rows in every if rows is not None]
    if len(found) < len(read):
        return None
    if not isinstance(stage, GroupStage):
        return max(found)
    return max(1.0, max(found) * _GROUPS) if stage.grouping.keys else 1.0


def of_map(step: Map, below: InputStatistics) -> InputStatistics:
    """Return what is known of the rows that a map makes."""
    passed = [(name, value.column) for name, value in step.columns if value.column is not None]
    distinct = {name: below.distinct[column] for name, column in passed if column in below.distinct}
    most = {name: below.most[column] for name, column in passed if column in below.most}
    return InputStatistics(below.rows, distinct, most)


def of_union(sides: Sequence[InputStatistics]) -> InputStatistics:
    """Return what is known of the rows of all sides."""
    rows = [side.rows for side in sides if side.rows is not None]
    return InputStatistics(sum(rows) if len(rows) == len(sides) else None)
