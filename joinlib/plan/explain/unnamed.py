"""Calls columns that the text has no names for by what they are.

    stage 1   _c1 = sum(o.v)          stage 1   sum(o.v)
    stage 2   sum(_c1) OVER (...)     stage 2   sum(sum(o.v)) OVER (...)

What is longer than a line keeps its name, which the stage that computes it explains. Columns of results keep theirs.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from joinlib.expr import Expr
from joinlib.model.inputs import InputPlan
from joinlib.model.stage import AnyStage, GroupStage, HopStage, OverStage, Pipeline, Stage, selected
from joinlib.plan.explain.texts import Say, bare, in_all, in_text

Texts = Mapping[str, str]  # what columns without names are, by how they are written
Columns = tuple[tuple[str, Expr], ...]
_LONGEST = 100
_GROUPING = "grouping_id()"  # what GROUPING SETS call `_gid`


def unnamed(plan: Pipeline) -> Pipeline:
    """Return the plan in which columns without names are called by what they are."""
    results = {result.stage for result in plan.results}
    made: dict[int, Texts] = {}
    every: dict[str, str] = {}  # by alias.column
    stages = []
    for number, stage in enumerate(plan.stages):
        inputs = []
        for given in stage.inputs:
            below = made.get(given.upstream, {}) if given.upstream is not None else {}
            told, known = _input(given, below)
            inputs.append(told)
            every |= {f"{given.alias}.{column}": text for column, text in known.items()}
        stage = in_all(replace(stage, inputs=tuple(inputs)), _say(every))
        made[number] = {} if number in results else _texts(selected(stage))
        stages.append(_called(stage, made[number]))
    return replace(plan, stages=tuple(stages))


def _input(given: InputPlan, known: Texts) -> tuple[InputPlan, Texts]:
    """Return an input in such words, and what the columns of its rows are."""
    read, maps = tuple(bare(known.get(column, column)) for column in given.read), []
    for step in given.maps:
        names = [name for expand in step.expands for name in expand.columns]
        told = in_all(step, _say({**known, **{n: _GROUPING for n in names if n.endswith("._gid")}}))
        columns = tuple(
            (name, value) for (name, _), (_, value) in zip(step.columns, told.columns, strict=True)
        )
        known = _texts(columns)
        maps.append(replace(told, columns=_renamed(columns, known)))
    return replace(given, read=read, maps=tuple(maps)), known


def _texts(columns: Columns) -> Texts:
    """What the columns without names are."""
    found = {name: value.sql for name, value in columns if name.startswith("_") and value.sql != name}
    return {name: text for name, text in found.items() if len(text) <= _LONGEST}


def _renamed(columns: Columns, known: Texts) -> Columns:
    return tuple((bare(known.get(name, name)), value) for name, value in columns)


def _called(stage: AnyStage, known: Texts) -> AnyStage:
    """Return a stage whose columns are called so."""
    if isinstance(stage, Stage | HopStage):
        select = tuple(
            replace(column, name=bare(known.get(column.name, column.name))) for column in stage.select
        )
        return replace(stage, select=select)
    if isinstance(stage, GroupStage):
        return replace(stage, grouping=replace(stage.grouping, select=_renamed(stage.grouping.select, known)))
    if isinstance(stage, OverStage):
        return replace(stage, over=replace(stage.over, select=_renamed(stage.over.select, known)))
    return stage


def _say(known: Texts) -> Say:
    """Return the function that says a text with what the columns are."""
    some = "|".join(map(re.escape, sorted(known, key=len, reverse=True))) or "(?!)"
    pattern = rf"(?<![\w.$`])(?:{some})(?![\w`.(])"
    return lambda text: in_text(pattern, lambda found: known[found[0]], text)
