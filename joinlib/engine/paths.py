"""Runs one batch of one unit where the rows of a path join come in: blocks in, tuples by route out."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from joinlib import fault
from joinlib.engine.attempt import Arrived, Attempt
from joinlib.engine.exchange import receive
from joinlib.engine.frames import Routed, by_route
from joinlib.engine.receipt import Receipt
from joinlib.engine.task import JoinTask
from joinlib.engine.unit import stored
from joinlib.join.paths import PathUnit
from joinlib.model.stage import PathStage
from joinlib.state.location import local_folder, unit_folder
from joinlib.state.manifest import Manifest, decode, empty
from joinlib.state.unit import hold

Heard = Callable[[], Iterable[bytes]]


class PathTask(Attempt[PathUnit, Routed]):
    """One batch of one unit of a path join's state.

    hops: returns the manifests of the units that ask it, after the batch before.
    """

    done = "joined"

    def __init__(
        self, task: JoinTask, unit: int, batch: int, saved: bytes | None, hops: Heard = list
    ) -> None:
        assert isinstance(task.stage, PathStage)
        self.stage, self.hops = task.stage, hops
        super().__init__(task, unit, batch, saved)

    def new(self) -> Manifest:
        return empty(len(self.stage.sides), len(self.stage.inputs))

    @contextmanager
    def working(self, arrived: Arrived) -> Iterator[tuple[Iterator[Routed], PathUnit]]:
        stage, tuning = self.stage, self.task.tuning
        if self.task.number:
            fault.point("handed", self.batch)
        segments = unit_folder(self.task.state, self.unit)
        indexes = local_folder(self.task.state) / segments.name
        blocks = receive(arrived, stage.inputs, segments)
        with hold(
            segments, indexes, stage.skip_bits, stage.sides, tuning, self.before, self.task.run
        ) as held:
            work = PathUnit(
                stage, tuning, held, self.before, lambda: map(decode, self.hops()), self.keeps_late
            )
            found = work.run(self.batch, blocks)
            schemas = dict(enumerate(leg.schema for leg in stage.legs))
            yield by_route(found, schemas, tuning.frame_bytes), work

    def figures(self, work: PathUnit, rows_out: int, files: tuple[str, ...], **own: Any) -> Receipt:
        """Build the receipt, with the figures of the indexes."""
        return super().figures(work, rows_out, files, **stored(work), **own)
