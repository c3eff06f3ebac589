"""Renders a plan for programs (json) and as a flow chart (mermaid)."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from joinlib.expr.types import name
from joinlib.model.fingerprint import fingerprint
from joinlib.model.operator import Operator
from joinlib.model.stage import Pipeline, Stage
from joinlib.plan.explain.pipeline import explain
from joinlib.plan.explain.stage import TITLES, classes


def render(plan: Pipeline, form: str) -> str:
    """Render the plan in one of the forms text, json and mermaid."""
    return {"text": explain, "json": as_json, "mermaid": as_mermaid}[form](plan)


def as_json(plan: Pipeline) -> str:
    """Render what each stage reads, joins and emits, in the form of a checkpoint's fingerprint."""
    stages = [fingerprint(stage) | {"select": _select(stage)} for stage in plan.stages]
    made: dict[str, object] = {"stages": stages}
    if plan.grouping is not None:
        result = {field.name: name(field.type) for field in plan.schema}
        made["aggregates"] = {**fingerprint(plan)["groups"], "select": result}
    if plan.budget is not None:
        made["memory"] = asdict(plan.budget)
    return json.dumps(made, indent=2)


def _select(stage: Stage) -> dict[str, list[str]]:
    return {c.name: [c.value.sql, name(c.value.type)] for c in stage.select}


def as_mermaid(plan: Pipeline) -> str:
    """Render a flow chart of inputs, stages, tables, and the columns that flow from one to the next."""
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _chart(plan))])


def _chart(plan: Pipeline) -> Iterator[str]:
    for number, stage in enumerate(plan.stages):
        joins = (_join(stage, j) for j in reversed(stage.operators))
        yield f"stage{number}[{_quoted(f'stage {number}', *joins)}]"
        for given in stage.inputs:
            if given.upstream is not None:
                yield f"stage{given.upstream} -->|{_quoted(', '.join(given.read))}| stage{number}"
                continue
            shown = given.source if given.alias == given.source else f"{given.source} {given.alias}"
            yield f"input{number}_{given.number}([{_quoted(shown)}]) --> stage{number}"
        for at, lookup in enumerate(stage.lookups):
            yield f"table{at}[({_quoted(lookup.table.source)})] -.-> stage{number}"
    last = len(plan.stages) - 1
    end = f"stage{last}"
    if plan.grouping is not None:
        by = ", ".join(k.sql for k in plan.grouping.keys) or "nothing"
        yield (
            f"{end} -->|partials| groups[{_quoted(f'groups by {by}', *(c.sql for c in plan.grouping.calls))}]"
        )
        end = "groups"
    yield f"{end} --> result([{_quoted(', '.join(plan.schema.names))}])"


def _join(stage: Stage, join: Operator) -> str:
    by = classes(stage, join)
    return f"{TITLES[join.kind]} by {by}" if by else TITLES[join.kind]


def _quoted(*lines: str) -> str:
    """Join the lines as one quoted Mermaid text, with the characters escaped that Mermaid would interpret."""
    safe = (line.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;") for line in lines)
    return f'"{"<br>".join(safe)}"'
