"""Explains a pipeline: its stages, what they store of each other's results, and each stage by itself."""

from collections.abc import Iterator

from joinlib.expr.types import name
from joinlib.model.joins import Leaf
from joinlib.model.stage import Pipeline, Stage
from joinlib.plan.explain.changes import edges
from joinlib.plan.explain.groups import cautions as group_cautions
from joinlib.plan.explain.groups import grouped
from joinlib.plan.explain.maps import cautions as map_cautions
from joinlib.plan.explain.retention import retention, unbounded
from joinlib.plan.explain.stage import called, classes, spoken, title
from joinlib.plan.explain.stage import cautions as stage_cautions
from joinlib.plan.explain.stage import explain as explain_stage
from joinlib.plan.memory import budget_lines
from joinlib.plan.memory import cautions as memory_cautions


def explain(plan: Stage | Pipeline) -> str:
    """Describe a stage or a pipeline in several lines for people."""
    if isinstance(plan, Stage):
        return explain_stage(plan)
    text = (
        explain_stage(plan.last, grouped=plan.grouping is not None)
        if len(plan.stages) == 1
        else _several(plan)
    )
    parts = [text] if plan.grouping is None else [text, grouped(plan, plan.grouping)]
    if changing := list(edges(plan)):
        parts.append("\n".join(["Changes", *(f"  {line}" for line in changing)]))
    if plan.budget is not None:
        parts.append(_memory(plan))
    parts += [f"Memory maps\n  - {caution}" for caution in map_cautions(plan)]
    return "\n\n".join(parts)


def _memory(plan: Pipeline) -> str:
    return "\n".join(
        [
            "Memory",
            *(f"  {line}" for line in budget_lines(plan)),
            *(f"  - {c}" for c in memory_cautions(plan)),
        ]
    )


def cautions(plan: Pipeline) -> Iterator[str]:
    """Collect all warnings of a plan."""
    for stage in plan.stages:
        yield from stage_cautions(stage)
    if plan.grouping is not None:
        yield from group_cautions(plan, plan.grouping)
    yield from memory_cautions(plan)
    yield from map_cautions(plan)


def _several(plan: Pipeline) -> str:
    lines = ["Stages", *_stages(plan), "", "Intermediates", *_stored(plan)]
    for number, stage in enumerate(plan.stages):
        reader = plan.reader(number)[0] if stage is not plan.last else None
        text = explain_stage(stage, number, reader, reader is None and plan.grouping is not None)
        lines += ["", f"Stage {number}", *(f"  {line}".rstrip() for line in text.splitlines())]
    return "\n".join(lines)


def _stages(plan: Pipeline) -> Iterator[str]:
    """Say which joins each stage does, and why they are not all in one stage."""
    for number, stage in enumerate(plan.stages):
        for join in stage.operators:
            inputs = ", ".join(spoken(stage, child) for child in join.children)
            yield f"  {number}  {title(join)} of {inputs} by {classes(stage, join)}"
        if not stage.operators:
            what = "lookups for" if stage.lookups else "by the result's key:"
            yield f"  {number}  {what} {', '.join(called(i) for i in stage.inputs)}"
    yield "  the rows of a key meet in one unit, so joins by another key are a stage of their own"


def _stored(plan: Pipeline) -> Iterator[str]:
    """Describe the intermediate results that stages store; a multi-way join by one key would store none."""
    for number in range(len(plan.stages) - 1):
        reader, given = plan.reader(number)
        stage = plan.stages[reader]
        columns = ", ".join(f"{c.name} {name(c.value.type)}" for c in given.columns)
        yield f"  the result of stage {number} is stored in stage {reader}: {columns}"
        for join in stage.operators:
            for child, side in zip(join.children, join.sides, strict=True):
                if isinstance(child, Leaf) and stage.inputs[child.input].upstream == number:
                    grows = "; it grows with every match: bound the time, or set join.retention"
                    yield f"    kept {retention(side)}{grows if unbounded(side) else ''}"
