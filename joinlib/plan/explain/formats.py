"""Renders a plan for programs (json) and as a flow chart (mermaid)."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from joinlib.expr.types import name
from joinlib.model.fingerprint import fingerprint
from joinlib.model.operator import Operator
from joinlib.model.stage import (
    AnyStage,
    GroupStage,
    HopStage,
    OverStage,
    PathStage,
    Pipeline,
    Stage,
    selected,
)
from joinlib.plan.explain.asof import asof, in_sides
from joinlib.plan.explain.paths import path
from joinlib.plan.explain.pipeline import explain
from joinlib.plan.explain.stage import TITLES, classes, named
from joinlib.plan.explain.words import spoken


def render(plan: Pipeline, form: str) -> str:
    """Render the plan in one of the forms text, json and mermaid."""
    return {"text": explain, "json": as_json, "mermaid": as_mermaid}[form](plan)


def as_json(plan: Pipeline) -> str:
    """Render what each stage reads, joins and emits, in the form of a checkpoint's fingerprint."""
    made: dict[str, object] = {
        "stages": [fingerprint(stage) | {"select": _select(stage)} for stage in plan.stages]
    }
    if plan.named:
        made["outputs"] = {result.name: result.stage for result in plan.named}
    if plan.orders:
        made["orders"] = [asdict(order) | {"paths": order.paths is not None} for order in plan.orders]
    if plan.budget is not None:
        made["memory"] = asdict(plan.budget)
    return json.dumps(made, indent=2)


def _select(stage: AnyStage) -> dict[str, list[str]]:
    return {n: [value.sql, name(value.type)] for n, value in selected(stage)}


def as_mermaid(plan: Pipeline) -> str:
    """Render a flow chart of inputs, stages, tables, and the columns that flow from one to the next."""
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _chart(spoken(plan)))])


def _chart(plan: Pipeline) -> Iterator[str]:
    for number, stage in enumerate(plan.stages):
        yield f"stage{number}[{_quoted(f'stage {number}', *_done(stage))}]"
        for given in stage.inputs:
            if given.upstream is not None:
                yield f"stage{given.upstream} -->|{_quoted(', '.join(given.read))}| stage{number}"
                continue
            yield f"input{number}_{given.number}([{_quoted(named(given))}]) --> stage{number}"
        for at, lookup in enumerate(stage.lookups):
            yield f"table{number}_{at}[({_quoted(lookup.table.source)})] -.-> stage{number}"
    for at, result in enumerate(plan.results):
        box = f"output{at}" if result.name else "result"
        shown = [*([result.name] if result.name else []), ", ".join(plan.only(result).schema.names)]
        yield f"stage{result.stage} --> {box}([{_quoted(*shown)}])"


def _done(stage: AnyStage) -> Iterator[str]:
    """Say what a stage does, a line for each operator."""
    if isinstance(stage, GroupStage):
        yield f"groups by {', '.join(k.sql for k in stage.grouping.keys) or 'nothing'}"
        yield from (call.sql for call in stage.grouping.every)
    elif isinstance(stage, OverStage) and (joined := asof(stage)):
        yield joined
        yield from (call.sql for call in in_sides(stage).over.calls)
    elif isinstance(stage, OverStage):
        yield f"over {', '.join(stage.over.partition) or 'all rows'}"
        yield from (call.sql for call in stage.over.calls)
    elif isinstance(stage, PathStage):
        yield from (path(stage, route) for route in stage.orders)
    elif isinstance(stage, HopStage):
        yield "further probes of the paths"
    else:
        yield from (_join(stage, join) for join in reversed(stage.operators))


def _join(stage: Stage, join: Operator) -> str:
    by = classes(stage, join)
    return f"{TITLES[join.kind]} by {by}" if by else TITLES[join.kind]


def _quoted(*lines: str) -> str:
    """Join the lines as one quoted Mermaid text, with the characters escaped that Mermaid would interpret."""
    safe = (line.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;") for line in lines)
    return f'"{"<br>".join(safe)}"'
