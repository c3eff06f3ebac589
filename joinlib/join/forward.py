"""What does a stage say of time to the stage that reads its rows? Law: no row comes that is older than what was said.

The watermark W that a unit has after a batch decides what is late from the next batch on. A row of that batch or a later one
may be joined of rows that are older: of event times y at most `delays[y]` behind W. So W less the largest of these is said,
and the reader keeps partners for so long. Nothing is said where a time has no bound in the stage that makes the rows: then
the reader keeps its rows for ever, which is right, and grows.
"""

from functools import cache

from joinlib.errors import SpecError
from joinlib.join.config import Leaf
from joinlib.join.layout import delays
from joinlib.join.reach import all_bounds, columns
from joinlib.join.stage import Pipeline, Stage
from joinlib.join.watermark import Tick
from joinlib.route.config import InputPlan
from joinlib.state.manifest import ALWAYS, NEVER


@cache
def behind(pipeline: Pipeline, number: int) -> int:
    """The most that times of the rows of stage `number`, by which its reader's rows expire, may be behind its watermark."""
    reader, plan = pipeline.reader(number)
    stage, read = pipeline.stages[number], bounded(pipeline.stages[reader], plan)
    if isinstance(stage.tree, Leaf):
        return ALWAYS if read else 0
    known = delays(stage.tree, stage.inputs, stage.above)
    return max((known.get(name, ALWAYS) for name in read), default=0)


def bounded(stage: Stage, plan: InputPlan) -> set[str]:
    """The columns of an input that time bounds of its stage speak of."""
    if isinstance(stage.tree, Leaf):
        return set()
    return columns(all_bounds(stage.tree)) & set(plan.schema.names)


def tick(plan: InputPlan, watermark: int, behind_us: int, closed: bool) -> Tick:
    """To the reader's input `plan`, after a batch. All units of a stage have one watermark: it is enough that one says it."""
    known = plan.time is not None and watermark not in (NEVER, ALWAYS) and behind_us < ALWAYS // 2
    return Tick(plan.number, watermark - behind_us if known else NEVER, closed=closed)


def check(pipeline: Pipeline) -> None:
    """Refuses what several stages cannot run."""
    if len(pipeline.stages) == 1:
        return
    for number, stage in enumerate(pipeline.stages):
        last = stage is pipeline.last
        assert stage.units == pipeline.units, "all stages have the same units"
        assert last or not stage.lookups, "tables are looked up in the last stage"
        assert last or number < pipeline.reader(number)[0], "rows go to a later stage"
        for plan in stage.inputs:
            assert plan.upstream is None or plan.time or not bounded(stage, plan), "bounds need a time"
        if stage.route is not None or isinstance(stage.tree, Leaf) and not last:
            raise SpecError(
                "a join of several stages runs each by the hash of its keys; this query has one without an equality"
                " (or join.strategy is not auto), so it cannot be run in one job"
            )
        if any(plan.numbered for plan in stage.inputs):
            raise SpecError("join.window.rows is for joins of one key; this query needs several stages")
