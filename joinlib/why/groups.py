"""In which groups rows count, whether a group has come out, and its row."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from joinlib.aggregate.groups import lowest_key, number
from joinlib.aggregate.partial import Partials
from joinlib.aggregate.unit import GroupUnit
from joinlib.apart import Failing
from joinlib.expr import Expr, ref
from joinlib.expr.logic import conjuncts
from joinlib.expr.packed import unpacked
from joinlib.expr.rows import built
from joinlib.model.grouping import AggregateCall, Grouping, GroupKey
from joinlib.model.stage import GroupStage
from joinlib.model.tuning import Tuning
from joinlib.model.watermark import Tick
from joinlib.plan.explain.texts import bare
from joinlib.route.content import weighted
from joinlib.state.manifest import empty
from joinlib.why.few import Few, whole
from joinlib.why.verdict import GroupRefused, RowGroup, Unqualified

_SETS = {  # what a set operation asks of its groups
    "sum(in_left) > 0 AND sum(in_right) > 0": "INTERSECT",
    "sum(in_left) > 0 AND sum(in_right) = 0": "EXCEPT",
    "least(sum(in_left), sum(in_right)) > 0": "INTERSECT ALL",
    "sum(in_left) - sum(in_right) > 0": "EXCEPT ALL",
}


def having(told: Grouping) -> str:
    """Return the condition on groups of a grouping in the words of the text; empty: none."""
    said = bare(told.having.sql) if told.having is not None else ""
    return _SETS.get(said, said)


def groups(grouping: Grouping, told: Grouping, few: Few) -> list[RowGroup]:
    """Return the group of each row, whose columns are the keys and what is aggregated. told: in the words of the text."""
    columns = [_values(few.rows.column(key.name), key).to_pylist() for key in grouping.keys]
    names = [bare(key.sql) for key in told.keys]
    keys = zip(*columns, strict=True) if columns else [()] * few.rows.num_rows
    return [RowGroup(tuple(zip(names, values, strict=True)), having(told)) for values in keys]


def _values(column: pa.ChunkedArray, key: GroupKey) -> pa.Array | pa.ChunkedArray:
    """What a key stands for."""
    if key.kind is None:
        return column
    return built([one and unpacked(one, key.kind) for one in column.to_pylist()], key.kind)


def released(grouping: Grouping, few: Few, watermarks: Sequence[int]) -> list[bool]:
    """Return whether the group of each row had come out for good at a watermark, µs."""
    if grouping.release is None:
        return [False] * len(watermarks)
    keys = number(few.rows.column(grouping.release.key).combine_chunks()).to_pylist()
    bounds = (lowest_key(grouping.release, watermark) for watermark in watermarks)
    return [key is not None and key < bound for key, bound in zip(keys, bounds, strict=True)]


def row_of_group(stage: GroupStage, few: Few) -> tuple[pa.Table, str | None]:
    """Return the row that a unit makes of all rows of one group; none, if HAVING leaves it out, or it fails, and why."""
    errors: list[str] = []

    def failed(_: pa.RecordBatch, failing: Sequence[Failing]) -> None:
        errors.extend(str(one.error) for one in failing)

    grouping, rows = stage.grouping, whole(few.rows)
    partials = Partials(grouping)
    partials.add(weighted(rows, np.ones(rows.num_rows, np.int64)) if grouping.changes else rows)
    blocks = [(0, number, block) for number, block in partials.blocks()]
    ends = [Tick(plan.number, closed=True) for plan in stage.inputs]
    with tempfile.TemporaryDirectory() as folder:
        unit = GroupUnit(stage, 0, Path(folder), Tuning(), empty(1, len(stage.inputs)), failed)
        made = pa.Table.from_batches(unit.run(0, blocks, ends), stage.emitted)
    return made.select(stage.schema.names), next(iter(errors), None)


def refused(stage: GroupStage, told: Grouping, group: RowGroup, few: Few) -> GroupRefused | Unqualified:
    """Return by which condition all rows of one group are left out, with what it reads of them.

    told: the groups in the words of the text. As in the engine, the first condition that is not true decides.
    """
    assert stage.grouping.having is not None
    if group.having in _SETS.values():
        return Unqualified(group.having)
    [row] = (read := _of_having(stage, few)).to_pylist() or [{}]
    clause = next(one for one in conjuncts(stage.grouping.having) if not _true(one, read))
    values = ((bare(call.sql), row[call.name]) for call in told.every if call.name in clause.columns)
    return GroupRefused(group, len(few.origins), clause.sql, tuple(values))


def _true(clause: Expr, row: pa.Table) -> bool:
    """Return whether a condition is true for a row, which has no columns if none is read."""
    [value] = clause.evaluate(row.column, 1).to_pylist()
    return value is True


def _read(grouping: Grouping) -> list[AggregateCall]:
    """Return the aggregates that HAVING reads."""
    read = grouping.having.columns if grouping.having is not None else ()
    return [call for call in grouping.every if call.name in read]


def _of_having(stage: GroupStage, few: Few) -> pa.Table:
    """Return what HAVING reads of one group: keys and aggregates, but nothing of the select list."""
    grouping = stage.grouping
    keys = ((key.name, ref(key.name, key.type)) for key in grouping.keys)
    calls = ((call.name, ref(call.name, call.type)) for call in _read(grouping))
    asked = replace(stage, grouping=replace(grouping, having=None, select=(*keys, *calls)))
    return row_of_group(asked, few)[0]
