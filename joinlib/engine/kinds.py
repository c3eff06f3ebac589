"""Which kind of unit runs which kind of stage."""

from typing import Any

from joinlib.engine.attempt import Attempt
from joinlib.engine.groups import GroupTask
from joinlib.engine.over import OverTask
from joinlib.engine.task import JoinTask
from joinlib.engine.unit import UnitTask
from joinlib.model.stage import AnyStage, GroupStage, OverStage, Stage

_KINDS: dict[type[AnyStage], type[Attempt[Any]]] = {
    Stage: UnitTask,
    GroupStage: GroupTask,
    OverStage: OverTask,
}


def attempt(task: JoinTask, unit: int, batch: int, saved: bytes | None) -> Attempt[Any]:
    """Return one unit of the task's stage, as it was before this batch."""
    return _KINDS[type(task.stage)](task, unit, batch, saved)
