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
_MARKS = {"_left": "in_left", "_right": "in_right", "_times": "times"}  # of INTERSECT and EXCEPT
_GROUPING = "grouping_id()"  # what GROUPING SETS call `_gid`


def unnamed(plan: Pipeline) -> Pipeline:
    """Return the plan in which columns without names are called by what they are."""
    return _told(plan)[0]


def naming(plan: Pipeline) -> Say:
    """Return what says a text of the plan with such columns of stages so, where the stage is named with them."""
    return _say(_told(plan)[1])


def _told(plan: Pipeline) -> tuple[Pipeline, Texts]:
    """Return the plan with such columns called so, and what those of stages are, by alias.column."""
    results = {result.stage for result in plan.results}
    made: dict[int | None, Texts] = {None: {}}
    names = _read_as(plan)
    every: dict[str, str] = {}  # by alias.column
    stages = []
    for number, stage in enumerate(plan.stages):
        told = [_input(given, made[given.upstream]) for given in stage.inputs]
        for given, known in reversed(told):  # the first query of a union gives its columns their names
            every |= {f"{given.alias}.{column}": text for column, text in known.items()}
        stage = replace(stage, inputs=tuple(given for given, _ in told))
        stage = _of_rows(in_all(stage, _say(every)), told[0][1])
        made[number] = {} if number in results else {**names.get(number, {}), **_made(stage)}
        stages.append(_called(stage, made[number]))
    return replace(plan, stages=tuple(stages)), every


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


def _read_as(plan: Pipeline) -> Mapping[int, Texts]:
    """What readers call columns that have no name in the stage that makes them."""
    found: dict[int, dict[str, str]] = {}
    for given in (given for stage in plan.stages for given in stage.inputs):
        for name, value in given.maps[0].columns if given.upstream is not None and given.maps else ():
            if value.column is not None and value.column.startswith("_") and not name.startswith("_"):
                assert given.upstream is not None
                found.setdefault(given.upstream, {})[value.column] = name
    for number, names in found.items():
        taken = [*names.values(), *(name for name, _ in selected(plan.stages[number]))]
        found[number] = {column: name for column, name in names.items() if taken.count(name) == 1}
    return found


def _of_rows(stage: AnyStage, known: Texts) -> AnyStage:
    """Return a stage whose result is said of rows whose columns are called so."""
    if isinstance(stage, OverStage):
        own = stage.over.calls  # a map above it, which it computes too, calls the only one so
        known = {**known, "_n": own[0].sql} if len(own) == 1 else known
        return replace(stage, over=replace(stage.over, select=_said(stage.over.select, known)))
    if isinstance(stage, GroupStage):  # of shared groups, each call is a column
        return replace(
            stage, grouping=replace(stage.grouping, select=_said(stage.grouping.select, _calls(stage)))
        )
    return stage


def _said(columns: Columns, known: Texts) -> Columns:
    return tuple((name, in_all(value, _say(known))) for name, value in columns)


def _calls(stage: AnyStage) -> Texts:
    calls = stage.grouping.every if isinstance(stage, GroupStage) else ()
    return {f"$a{at}": call.sql for at, call in enumerate(calls)}


def _made(stage: AnyStage) -> Texts:
    """What the columns without names of a stage are."""
    return {**_calls(stage), **_texts(selected(stage))}


def _texts(columns: Columns) -> Texts:
    """What the columns without names are."""
    found = {
        name: _MARKS.get(name, value.sql)
        for name, value in columns
        if name.startswith("_") and value.sql != name
    }
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
    if not known:
        return str
    some = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    pattern = rf"(?<![\w.$`])(?:{some})(?![\w`.(])"
    return lambda text: in_text(pattern, lambda found: known[found[0]], text)
