"""Explains which operators of a plan emit changes, and why; the others only add rows and pay nothing for it."""

from collections.abc import Iterator

from joinlib.model.operator import Operator
from joinlib.model.stage import AnyStage, GroupStage, HopStage, PathStage, Pipeline, Stage
from joinlib.plan.explain.stage import called, spoken, title


def edges(plan: Pipeline) -> Iterator[str]:
    """Say of each operator and input whose rows may be taken back why; nothing where all only grow."""
    for number, stage in enumerate(plan.stages):
        place = f"stage {number}: " if len(plan.stages) > 1 else ""
        yield from dict.fromkeys(f"{place}{line}" for line in _stage(stage))


def _stage(stage: AnyStage) -> Iterator[str]:
    upserts = any(join.kind == "upsert" for join in stage.operators)
    for plan in stage.inputs:
        if plan.upstream is None and plan.changes:
            yield f"{called(plan)}: {'the last row of a key counts' if upserts else 'its rows may be deleted'}"
    if isinstance(stage, Stage):
        for join in stage.operators:
            yield from _operator(stage, join)
    elif isinstance(stage, HopStage) and stage.last and stage.changes:
        yield "the result of the paths: what it joins may be taken back"
    elif stage.changes and not isinstance(stage, PathStage | HopStage):
        what = "group" if isinstance(stage, GroupStage) else "row"
        yield f"a {what} is taken back when it changes"


def _operator(stage: Stage, join: Operator) -> Iterator[str]:
    if join.kind == "upsert" or not join.changes:
        return
    why = "rows are emitted without waiting for partners" if join.eager else "what it joins may be taken back"
    yield f"{title(join)} of {', '.join(spoken(stage, child) for child in join.children)}: {why}"
