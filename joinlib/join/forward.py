"""Forwards a stage's watermark to the stage that reads its rows.

How far behind that watermark the rows may be is part of the plan (`InputPlan.behind`).
"""

from joinlib.errors import SpecError
from joinlib.join.watermark import Tick
from joinlib.model.inputs import InputPlan
from joinlib.model.joins import Leaf
from joinlib.model.stage import Pipeline
from joinlib.model.time import ALWAYS, NEVER


def tick(plan: InputPlan, watermark: int, closed: bool) -> Tick:
    """Return the tick that follows a batch, for the next stage's input `plan`.

    watermark: the stage's watermark after the batch, µs. closed: the stage will emit no further rows.
    """
    return Tick(plan.number, NEVER if watermark == ALWAYS else watermark, closed=closed)


def check(pipeline: Pipeline) -> None:
    """Check that a pipeline of several stages can run.

    Raises:
        SpecError: a stage does not join by equality, or an input is limited by a number of rows.
    """
    if len(pipeline.stages) == 1:
        return
    for stage in pipeline.stages:
        assert stage.units == pipeline.units, "all stages have the same units"
        if stage.route is not None or (isinstance(stage.tree, Leaf) and stage is not pipeline.last):
            raise SpecError(
                "this query needs several stages, each of which joins by equality; one of its joins has none (or"
                " join.strategy asks for another way)"
            )
        if any(plan.numbered for plan in stage.inputs):
            raise SpecError(
                "join.window.rows is for inputs that are joined by one key; this query needs several stages"
            )
        assert all(plan.time or not plan.behind for plan in stage.inputs), "time is told where it counts"
    for number, stage in enumerate(pipeline.stages[:-1]):
        assert not stage.lookups, "tables are looked up in the last stage"
        assert number < pipeline.reader(number)[0], "rows go on to a later stage"
