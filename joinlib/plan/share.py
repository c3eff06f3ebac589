"""Lets equal parts of a query be computed once: stages that differ in names and select lists only become one.

    SELECT auction AS a, count(*) AS n FROM bid GROUP BY auction        one stage of groups: a, n
    SELECT count(*) + 1 AS m FROM bid b GROUP BY b.auction              ─► m = n + 1

The stage emits the columns that any of them selects; what else is in their select lists, and HAVING, is a map in
front of those who read it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from joinlib.expr import Expr, ref
from joinlib.expr.nodes import composed
from joinlib.model.inputs import InputPlan
from joinlib.model.maps import Map
from joinlib.model.stage import (
    AnyStage,
    GroupStage,
    HopStage,
    OutputColumn,
    OverStage,
    PathStage,
    Stage,
    selected,
)
from joinlib.plan.feed import needed
from joinlib.plan.forms import Columns, Forms, Given


@dataclass(frozen=True)
class _Part:
    """A stage as the planner has made it."""

    stage: AnyStage
    first: int  # the number of the first stage that is equal to it
    columns: Columns  # what is the same in all that are equal, by name

    def known(self, column: str) -> int | str:
        """Return what identifies a column; the value of a call has the same name in all."""
        return self.columns.get(column, column)


def shared(
    stages: Sequence[AnyStage], results: Collection[int] = ()
) -> tuple[tuple[AnyStage, ...], Mapping[int, int]]:
    """Return the stages of which no two compute the same, and the new number of each; the last stays the last.

    `results`: stages that make the results of several outputs, which nobody else reads.
    """
    forms, first, rows, parts = Forms(), dict[int, int](), dict[int, Given](), list[_Part]()
    for number, stage in enumerate(stages):
        columns = forms.columns(stage, rows)
        at = number
        if not isinstance(stage, PathStage | HopStage) and number not in results:  # those are never shared
            at = first.setdefault(forms.stage(_with(stage, ()), rows), number)
        parts.append(_Part(stage, at, columns))
        rows[number] = forms.mapped(_selects(stage), Given(at, (), columns))
    places = {number: place for place, number in enumerate(dict.fromkeys(part.first for part in parts))}
    return tuple(_merged(parts, places)), {n: places[part.first] for n, part in enumerate(parts)}


def _merged(parts: Sequence[_Part], places: Mapping[int, int]) -> list[AnyStage]:
    equal: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        equal.setdefault(part.first, []).append(number)
    done, steps = list[AnyStage](), dict[int, Map]()
    for first, numbers in equal.items():
        stage = parts[first].stage
        if len(numbers) > 1:
            emitted = _emitted([parts[n] for n in numbers])
            steps |= {n: _above(parts[n], emitted) for n in numbers}
            stage = _with(stage, tuple(emitted.values()))
        plans = (
            p if p.upstream is None else _moved(p, places[parts[p.upstream].first], steps.get(p.upstream))
            for p in stage.inputs
        )
        done.append(replace(stage, inputs=tuple(plans)))
    return done


def _emitted(parts: Sequence[_Part]) -> dict[int | str, tuple[str, Expr]]:
    """Return the columns that equal stages select: name and column of the first one, by what identifies them."""
    first, *_ = parts
    found: dict[int | str, tuple[str, Expr]] = {}
    for name, value in selected(first.stage):
        if value.column is not None:
            found.setdefault(first.known(value.column), (name, value))
    own = {number: name for name, number in first.columns.items()}
    for part in parts:
        for column, kind in _read(part.stage).items():
            if (known := part.known(column)) not in found:
                name = known if isinstance(known, str) else own[known]
                found[known] = (_unlike({n for n, _ in found.values()}, name), ref(name, kind))
    return found


def _unlike(taken: Collection[str], name: str) -> str:
    return name if name not in taken else _unlike(taken, f"{name}'")


def _above(part: _Part, emitted: Mapping[int | str, tuple[str, Expr]]) -> Map:
    """Return the map that makes a stage's rows of what is emitted."""
    below = {c: ref(emitted[part.known(c)][0], kind) for c, kind in _read(part.stage).items()}
    whole = _selects(part.stage)
    columns = tuple((name, composed(value, below)) for name, value in whole.columns)
    return Map(whole.filter and composed(whole.filter, below), (), columns)


def _moved(plan: InputPlan, upstream: int, step: Map | None) -> InputPlan:
    """Return an input that reads a stage by its new number, through a map."""
    plan = replace(plan, upstream=upstream, source=f"$stage{upstream}")
    if step is None or (step.filter is None and all(value.column == name for name, value in step.columns)):
        return plan
    wanted = [name for name, _ in plan.maps[-1].columns] if plan.maps else plan.read
    maps, read = needed((step, *plan.maps), wanted)
    return replace(plan, maps=maps, read=tuple(sorted(read)))


def _selects(stage: AnyStage) -> Map:
    """Return the select list of a stage, and HAVING, as a map."""
    having = stage.grouping.having if isinstance(stage, GroupStage) else None
    return Map(having, (), selected(stage))


def _read(stage: AnyStage) -> dict[str, pa.DataType]:
    """Return the columns that the select list and HAVING read, with their types."""
    plans = (*stage.inputs, *(lookup.table for lookup in stage.lookups))
    kinds = {c.name: c.value.type for plan in plans for c in plan.columns}
    if isinstance(stage, GroupStage):
        kinds |= {call.name: call.type for call in stage.grouping.every}
    if isinstance(stage, OverStage):
        kinds |= {call.name: call.type for call in stage.over.calls}
    whole = _selects(stage)
    values = (*(value for _, value in whole.columns), *([whole.filter] if whole.filter else []))
    return {name: kinds[name] for value in values for name in value.columns}


def _with(stage: AnyStage, select: tuple[tuple[str, Expr], ...]) -> AnyStage:
    """Return a stage with another select list, and without HAVING."""
    assert not isinstance(stage, PathStage | HopStage)
    if isinstance(stage, Stage):
        return replace(stage, select=tuple(OutputColumn(name, value) for name, value in select))
    if isinstance(stage, GroupStage):
        return replace(stage, grouping=replace(stage.grouping, having=None, select=select))
    return replace(stage, over=replace(stage.over, select=select))
