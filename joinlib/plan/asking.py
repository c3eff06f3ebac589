"""Gives lookups of a table that its budget cannot hold a stage of their own, so that each key is kept in one unit.

    joins by k ─► units of k ─► exchange by the key of t ─► t in the unit of its key ─► result

Without it each unit asks for, and keeps, every key that its rows meet, so that all hold the same ones. Behind the exchange
nothing is stored, so that hot keys are spread as those of a single stream are (`route.hotspot`). Where the budget holds all
keys, runs with the exchange were faster or slower than those without (bench/lookup/behind_join.py), so there is none.

Law: the plan with such stages gives the rows of the plan without, and its state is the same: the stages are the last ones
and have none. So every run decides anew, by the size of the table.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from joinlib.expr import ref
from joinlib.model.inputs import InputPlan, StoredColumn
from joinlib.model.joins import Leaf, Lookup
from joinlib.model.stage import AnyStage, HopStage, OutputColumn, Pipeline, Stage
from joinlib.plan.columns import key_column
from joinlib.sql import KeyClass

_Class = frozenset[str]  # the texts of values that are equal in a row


def with_asking_stages(plan: Pipeline) -> Pipeline:
    """Return the plan with a further stage for each scarce lookup by another key than that of the units of its rows."""
    last = plan.stages[-1]
    if plan.named or plan.by_key or not isinstance(last, Stage | HopStage) or last.changes or last.units == 1:
        return plan
    first, *later = _runs(last.lookups, _classes(last))
    stages = list(plan.stages[:-1])
    made: Stage | HopStage = replace(last, lookups=first)
    for run in later:
        columns = _passed(plan, last, run)
        stages.append(replace(made, select=tuple(OutputColumn(c.name, c.value) for c in columns)))
        made = _asking(len(stages), columns, run, last)
    return replace(plan, stages=(*stages, made))


def _runs(lookups: Sequence[Lookup], together: Sequence[_Class]) -> list[tuple[Lookup, ...]]:
    """Return the lookups of each stage, in order: the first ones are done where rows are joined, maybe none."""
    runs = list[tuple[Lookup, ...]]([()])
    for lookup in lookups:
        if lookup.caching.scarce and not _local(lookup, together):
            runs.append(())
            together = [frozenset((probe.sql,)) for probe in lookup.probe]
        runs[-1] += (lookup,)
    return runs


def _local(lookup: Lookup, together: Sequence[_Class]) -> bool:
    """Return whether all rows with a key of the table are in one unit already."""
    asked = {probe.sql for probe in lookup.probe}
    return bool(together) and all(asked & values for values in together)


def _classes(stage: Stage | HopStage) -> list[_Class]:
    """Return by which values the rows of a stage are routed; none if those of one value are in several units."""
    if isinstance(stage, HopStage) or stage.route is not None:
        return []
    values = [{c.name: c.value.sql for c in plan.columns} for plan in stage.inputs]
    keys = [[known[key] for key in plan.keys] for known, plan in zip(values, stage.inputs, strict=True)]
    return [frozenset(members) for members in zip(*keys, strict=False)]


def _passed(plan: Pipeline, last: Stage | HopStage, run: Sequence[Lookup]) -> list[StoredColumn]:
    """Return the columns that the lookups of a run and what is behind them read of rows before them."""
    behind = last.lookups[last.lookups.index(run[0]) :]
    read = {name for value in replace(last, lookups=behind).above for name in value.columns}
    read -= {c.name for lookup in behind for c in lookup.table.columns}
    types = dict(_typed(plan.stages))
    return [StoredColumn(name, ref(name, types[name])) for name in sorted(read)]


def _typed(stages: Sequence[AnyStage]) -> Iterator[tuple[str, pa.DataType]]:
    """Yield all columns of the rows of inputs and tables, with their types."""
    for stage in stages:
        for plan in (*stage.inputs, *(lookup.table for lookup in stage.lookups)):
            yield from ((c.name, c.value.type) for c in plan.columns)


def _asking(
    number: int, columns: Collection[StoredColumn], run: tuple[Lookup, ...], last: Stage | HopStage
) -> Stage:
    """Return stage `number`, which looks up tables for the rows of the stage before."""
    first, alias = run[0], f"${number - 1}"
    classes = (KeyClass({alias: probe}, probe.type) for probe in first.probe)
    keys = tuple(key_column(alias, at, known) for at, known in enumerate(classes))
    rows = InputPlan(
        number=0,
        alias=alias,
        source="",
        read=tuple(c.name for c in columns),
        filter=None,
        columns=tuple({c.name: c for c in (*keys, *columns)}.values()),
        keys=tuple(key.name for key in keys),
        time=None,
        delay_us=0,
        idle_us=None,
        keep_null_keys=first.kind not in ("inner", "semi"),
    ).of_stage(number - 1)
    return Stage(
        inputs=(rows,),
        tree=Leaf(0),
        root=Leaf(0),
        select=last.select,
        timed=False,
        final_close=False,
        units=last.units,
        lookups=run,
        asks=True,
    )
