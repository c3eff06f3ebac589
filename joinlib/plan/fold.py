"""Lets the last stage compute what the query makes of its rows, so that they pass no further exchange.

SELECT k, n + 1 AS m FROM (SELECT k, count(*) AS n FROM o GROUP BY k) WHERE n > 2
one stage of groups: HAVING n > 2, select k, n + 1
"""

from collections.abc import Sequence
from dataclasses import replace

from joinlib.expr import Expr
from joinlib.expr.logic import all_of
from joinlib.expr.nodes import composed
from joinlib.model.maps import Map
from joinlib.model.stage import AnyStage, GroupStage, HopStage, OutputColumn, OverStage, Stage, selected
from joinlib.plan.source import SourceInput


def folded(stages: Sequence[AnyStage], result: SourceInput) -> AnyStage | None:
    """Return the last stage with the maps of the result, or None if it cannot compute them."""
    (feed, *others), number = result.feeds, len(stages) - 1
    read = any(plan.upstream == number for stage in stages for plan in stage.inputs)
    if others or feed.upstream != number or read:
        return None
    stage: AnyStage | None = stages[-1]
    for step in feed.maps:
        stage = stage and _mapped(stage, step)
    return stage


def _mapped(stage: AnyStage, step: Map) -> AnyStage | None:
    filters = isinstance(stage, GroupStage) or (isinstance(stage, OverStage) and stage.over.present is None)
    if step.expands or (step.filter is not None and not filters):
        return None
    below = dict(selected(stage))
    select = tuple((name, composed(value, below)) for name, value in step.columns)
    kept = [composed(step.filter, below)] if step.filter is not None else []
    if isinstance(stage, Stage | HopStage):
        return replace(stage, select=tuple(OutputColumn(name, value) for name, value in select))
    if isinstance(stage, GroupStage):
        return replace(
            stage, grouping=replace(stage.grouping, select=select, having=_both(stage.grouping.having, kept))
        )
    assert isinstance(stage, OverStage), "routes of a path join are read by their next legs"
    return replace(stage, over=replace(stage.over, select=select, qualify=_both(stage.over.qualify, kept)))


def _both(value: Expr | None, more: list[Expr]) -> Expr | None:
    return all_of([*([value] if value is not None else []), *more])
