"""Forwards a stage's watermark to the stage that reads its rows.

How far behind that watermark the rows may be is part of the plan (`InputPlan.behind`).
"""

from joinlib.model.inputs import InputPlan
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.watermark import Tick


def tick(plan: InputPlan, watermark: int, closed: bool) -> Tick:
    """Return the tick that follows a batch, for the next stage's input `plan`.

    watermark: the stage's watermark after the batch, µs. closed: the stage will emit no further rows.
    """
    return Tick(plan.number, NEVER if watermark == ALWAYS else watermark, closed=closed)
