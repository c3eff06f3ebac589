"""Which kind of unit runs which kind of stage."""

from typing import Any

from joinlib.engine.attempt import Attempt
from joinlib.engine.groups import GroupTask
from joinlib.engine.hop import HopTask, LastHopTask
from joinlib.engine.over import OverTask
from joinlib.engine.paths import Heard, PathTask
from joinlib.engine.task import JoinTask
from joinlib.engine.unit import UnitTask
from joinlib.model.stage import AnyStage, GroupStage, HopStage, OverStage, PathStage, Stage

_KINDS: dict[type[AnyStage], type[Attempt[Any, Any]]] = {
    Stage: UnitTask,
    GroupStage: GroupTask,
    OverStage: OverTask,
}


def attempt(
    task: JoinTask,
    unit: int,
    batch: int,
    saved: bytes | None,
    asked: bytes | None = None,
    hops: Heard = list,
) -> Attempt[Any, Any]:
    """Return one unit of the task's stage, as it was before this batch.

    asked: of a HopStage, the manifest of the unit that it asks, after this batch. hops: of a PathStage, returns the
    manifests of the units that ask it, after the batch before.
    """
    if isinstance(task.stage, HopStage):
        return (LastHopTask if task.stage.last else HopTask)(task, unit, batch, saved, asked)
    if isinstance(task.stage, PathStage):
        return PathTask(task, unit, batch, saved, hops)
    return _KINDS[type(task.stage)](task, unit, batch, saved)
