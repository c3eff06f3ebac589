"""Explains a pipeline: its stages, what they store of each other's results, and each stage by itself."""

from collections.abc import Iterator

from joinlib.expr.types import name
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.stage import AnyStage, GroupStage, OverStage, Pipeline, Stage
from joinlib.plan.explain.changes import edges
from joinlib.plan.explain.cross import cautions as cross_cautions
from joinlib.plan.explain.groups import cautions as group_cautions
from joinlib.plan.explain.groups import grouped
from joinlib.plan.explain.maps import cautions as map_cautions
from joinlib.plan.explain.over import by_partition, ranked, summary
from joinlib.plan.explain.over import cautions as over_cautions
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
    first = plan.stages[0]
    if len(plan.stages) == 1 and isinstance(first, Stage):
        parts = [explain_stage(first)]
    elif len(plan.stages) == 2 and isinstance(first, Stage) and plan.grouping is not None:
        parts = [explain_stage(first, grouped=True), grouped(plan, plan.grouping)]
    else:
        parts = [_several(plan)]
    if changing := list(edges(plan)):
        parts.append("\n".join(["Changes", *(f"  {line}" for line in changing)]))
    if plan.budget is not None:
        parts.append(_memory(plan))
    if plan.notes:
        parts.append("\n".join(["Notes", *(f"  - {note}" for note in plan.notes)]))
    if crossed := list(cross_cautions(plan)):
        parts.append("\n".join(["Without an equality", *(f"  - {caution}" for caution in crossed)]))
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
    yield from plan.notes
    for stage in plan.stages:
        if isinstance(stage, Stage):
            yield from stage_cautions(stage)
        elif isinstance(stage, GroupStage):
            yield from group_cautions(plan, stage.grouping)
        else:
            yield from over_cautions(stage)
    yield from cross_cautions(plan)
    yield from memory_cautions(plan)
    yield from map_cautions(plan)


def _several(plan: Pipeline) -> str:
    lines = ["Stages", *_stages(plan)]
    if stored := list(_stored(plan)):
        lines += ["", "Intermediates", *stored]
    for number, stage in enumerate(plan.stages):
        lines += [
            "",
            f"Stage {number}",
            *(f"  {line}".rstrip() for line in _one(plan, number, stage).splitlines()),
        ]
    return "\n".join(lines)


def _one(plan: Pipeline, number: int, stage: AnyStage) -> str:
    if isinstance(stage, GroupStage):
        return grouped(plan, stage.grouping)
    if isinstance(stage, OverStage):
        return ranked(stage)
    readers = [reader for reader, _ in plan.readers(number)]
    reader = readers[0] if readers else None
    grouping = reader is not None and isinstance(plan.stages[reader], GroupStage)
    return explain_stage(stage, number, reader, grouping)


def _stages(plan: Pipeline) -> Iterator[str]:
    """Say what each stage does, of what, and why it is not done in one."""
    for number, stage in enumerate(plan.stages):
        of = ", ".join(
            dict.fromkeys(called(i) if isinstance(stage, Stage) else _fed(i) for i in stage.inputs)
        )
        if isinstance(stage, GroupStage):
            by = ", ".join(k.sql for k in stage.grouping.keys) or "nothing"
            yield f"  {number}  groups of {of} by {by}"
            continue
        if isinstance(stage, OverStage):
            yield f"  {number}  {summary(stage)} of {of} {by_partition(stage)}"
            continue
        for join in stage.operators:
            inputs = ", ".join(spoken(stage, child) for child in join.children)
            by = classes(stage, join)
            yield f"  {number}  {title(join)} of {inputs} {f'by {by}' if by else 'in one unit'}"
        if not stage.operators:
            what = (
                "lookups for"
                if stage.lookups
                else "rows of"
                if not stage.inputs[0].keys
                else "by the result's key:"
            )
            yield f"  {number}  {what} {of}"
    if sum(bool(stage.operators) for stage in plan.stages) > 1:
        yield "  the rows of a key meet in one unit, so joins by another key are a stage of their own"


def _fed(given: InputPlan) -> str:
    """Name an input of a stage that joins nothing: its source, and how columns call it."""
    name = given.source if given.upstream is None else called(given)
    return name if given.upstream is not None or given.alias == given.source else f"{name} ({given.alias})"


def _stored(plan: Pipeline) -> Iterator[str]:
    """Describe the intermediate results that stages store; a multi-way join by one key would store none."""
    for number in range(len(plan.stages) - 1):
        for reader, given in plan.readers(number):
            stage = plan.stages[reader]
            if not isinstance(stage, Stage):
                continue
            columns = ", ".join(f"{c.name} {name(c.value.type)}" for c in given.columns)
            yield f"  the result of stage {number} is stored in stage {reader}: {columns}"
            if not isinstance(plan.stages[number], Stage):
                continue  # its rows are taken back when they change: no more of them than it keeps itself
            for join in stage.operators:
                for child, side in zip(join.children, join.sides, strict=True):
                    if isinstance(child, Leaf) and stage.inputs[child.input] is given:
                        grows = "; it grows with every match: bound the time, or set join.retention"
                        yield f"    kept {retention(side)}{grows if unbounded(side) else ''}"
