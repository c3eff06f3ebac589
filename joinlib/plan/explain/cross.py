"""Warns of joins without an equality that no index helps: all rows of their inputs meet in one unit."""

from collections.abc import Iterator

from joinlib.model.inputs import InputPlan
from joinlib.model.stage import GroupStage, Pipeline, Stage
from joinlib.plan.explain.stage import called


def cautions(plan: Pipeline) -> Iterator[str]:
    """Name the inputs of each such join, unless one of them is a single row."""
    for stage in plan.stages:
        if not isinstance(stage, Stage) or len(stage.inputs) < 2 or not all(map(_constant, stage.inputs)):
            continue
        if any(_single(plan, i) for i in stage.inputs):
            continue
        names = " and ".join(called(i) for i in stage.inputs)
        yield (
            f"{names} are joined without an equality: all their rows meet in one of the units, and every row looks at all"
            " rows of the other side; join by an equality, or bound the time"
        )


def _constant(plan: InputPlan) -> bool:
    """Whether all rows of an input have the same key."""
    keys = [c for c in plan.columns if c.name in plan.keys]
    return bool(keys) and not any(c.value.columns for c in keys)


def _single(plan: Pipeline, given: InputPlan) -> bool:
    """Whether an input is the row of an aggregate."""
    if given.upstream is None:
        return False
    below = plan.stages[given.upstream]
    if isinstance(below, GroupStage):
        return not below.grouping.keys
    return isinstance(below, Stage) and len(below.inputs) == 1 and _single(plan, below.inputs[0])
