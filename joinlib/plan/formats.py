"""A plan for programs (json) and for pictures (mermaid)."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from joinlib.expr.types import name
from joinlib.join.config import Join
from joinlib.join.stage import Pipeline, Stage
from joinlib.plan.binary import TITLES, binary, key, named
from joinlib.plan.explain import joins
from joinlib.plan.fingerprint import fingerprint
from joinlib.plan.told import explain


def told(plan: Pipeline, form: str) -> str:
    """The plan as text, json or mermaid."""
    return {"text": explain, "json": as_json, "mermaid": as_mermaid}[form](plan)


def as_json(plan: Pipeline) -> str:
    """What each stage reads, joins and gives, as a checkpoint's fingerprint has it; and how TSC's groups became stages."""
    tree = binary(plan)
    stages = [fingerprint(stage) | {"select": _select(stage)} for stage in plan.stages]
    groups = [
        {"inputs": [named(i) for i in group.inputs], "stages": sorted(tree.stage[p.root] for p in parts)}
        for group, parts in tree.cut
    ]
    made: dict[str, object] = {"stages": stages, "groups": groups}
    if plan.grouping is not None:
        result = {field.name: name(field.type) for field in plan.schema}
        made["aggregates"] = {**fingerprint(plan)["groups"], "select": result}
    if plan.budget is not None:
        made["memory"] = asdict(plan.budget)
    return json.dumps(made, indent=2)


def _select(stage: Stage) -> dict[str, list[str]]:
    return {c.name: [c.value.sql, name(c.value.type)] for c in stage.select}


def as_mermaid(plan: Pipeline) -> str:
    """A flow chart: inputs, stages, tables, and the columns that go from one to the next."""
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _chart(plan))])


def _chart(plan: Pipeline) -> Iterator[str]:
    for number, stage in enumerate(plan.stages):
        yield f"stage{number}[{_quoted(f'stage {number}', *(_join(stage, j) for j in joins(stage.tree)))}]"
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
        yield f"{end} -->|partials| groups[{_quoted(f'groups by {by}', *(c.sql for c in plan.grouping.calls))}]"
        end = "groups"
    yield f"{end} --> result([{_quoted(', '.join(plan.schema.names))}])"


def _join(stage: Stage, join: Join) -> str:
    classes = (" = ".join(key(stage, k) for k in ks) for ks in zip(*join.keys, strict=True))
    return f"{TITLES[join.kind]} by {' and '.join(classes)}" if join.keys[0] else TITLES[join.kind]


def _quoted(*lines: str) -> str:
    """Mermaid's text, in which only quotes and markup mean anything else."""
    safe = (line.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;") for line in lines)
    return f'"{"<br>".join(safe)}"'
