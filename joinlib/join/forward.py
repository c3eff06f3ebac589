"""What does a stage say of time to the stage that reads its rows? Its watermark: how far behind it the rows may be, the plan
says (`InputPlan.behind`).
"""

from joinlib.errors import SpecError
from joinlib.join.config import Leaf
from joinlib.join.stage import Pipeline
from joinlib.join.watermark import Tick
from joinlib.route.config import InputPlan
from joinlib.state.manifest import ALWAYS, NEVER


def tick(plan: InputPlan, watermark: int, closed: bool) -> Tick:
    """To the reader's input `plan`, after a batch. `closed`: nothing more will ever come."""
    return Tick(plan.number, NEVER if watermark == ALWAYS else watermark, closed=closed)


def check(pipeline: Pipeline) -> None:
    """Refuses what several stages cannot run."""
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
