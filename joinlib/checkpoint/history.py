"""Which kept batches of a checkpoint are intact? To each of those the job can go back.

    check     before a run: the newest batch's own records can be read
    damage    of one batch, down to each segment that its manifests name
    forget    drop everything after a batch

Going back survives a crash: `CHECKPOINT/restoring` says that it has begun, and nothing runs until it is done.
Nothing else has to go back: logs of inputs only grow, and offsets say how far they were read; indexes are
compared with the manifest by their tokens; and dead letters are named by what was read, so a batch that runs
again overwrites them.
"""

import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from joinlib.checkpoint import batches, timeline
from joinlib.errors import StateError
from joinlib.files import sync, whole
from joinlib.sink.publish import numbers, waiting
from joinlib.state import manifests, segment
from joinlib.state.location import state_folder, unit_folder
from joinlib.state.manifest import decode

_RESTORING = "restoring"


@dataclass(frozen=True)
class History:
    """The kept batches of one checkpoint.

    `operators` is the number of stages that have state.
    """

    checkpoint: Path
    operators: int

    @property
    def spark(self) -> Path:
        return self.checkpoint / "spark"

    @property
    def states(self) -> Path:
        return self.checkpoint / "state"

    def batches(self) -> list[int]:
        """Return the batches that are done and have manifests, intact or not, newest first."""
        there = set(manifests.kept_batches(self.states))
        return [batch for batch in reversed(batches.all_done(self.spark)) if batch in there]

    def check(self) -> None:
        """Check that the job can go on from the newest batch. O(bytes of manifests).

        Raises:
            StateError: It cannot.
        """
        if (to := self.going_back()) is not None:
            raise StateError(
                f"checkpoint {self.checkpoint} was on its way back to batch {to}: finish that by"
                f" `streamjoin restore FILE --to-batch {to}`"
            )
        if (begun := batches.begun(self.spark)) is not None:
            batches.offset(self.spark, begun)
        if (done := batches.done(self.spark)) is not None:
            self._check_logs(done)

    def damage(self, batch: int, known: set[str]) -> str:
        """Return what is wrong with a batch that is done; empty means nothing. O(bytes of its state).

        Segments in `known` are not read again; intact ones are added to it.
        """
        try:
            self._check_logs(batch)
            for stage in range(self.operators):
                for unit, saved in manifests.everything(self.states, batch, stage).items():
                    folder = unit_folder(state_folder(self.states, stage), unit)
                    for one in {s for side in decode(saved).sides for s in side.segments}:
                        if (name := str(folder / one.name)) not in known:
                            segment.verify(folder, one)
                            known.add(name)
        except StateError as error:
            return str(error)
        return ""

    def _check_logs(self, batch: int) -> None:
        batches.check_done(self.spark, batch)
        for stage in range(self.operators):
            manifests.everything(self.states, batch, stage)

    # --- going back --------------------------------------------------------------------------

    def going_back(self) -> int | None:
        """Return the batch to which an unfinished restore goes back, or None."""
        file = self.checkpoint / _RESTORING
        return int(file.read_text()) if file.exists() else None

    def forget(self, after: int, outputs: Iterable[Path]) -> None:
        """Drop all that came after batch `after`, including results in these folders.

        After a crash, call it again.
        """
        with whole(self.checkpoint / _RESTORING, synced=True) as aside:
            aside.write_text(f"{after}\n")
        for output in outputs:
            _withdraw(output, after)
        batches.forget(self.spark, after)
        timeline.cut(self.checkpoint, after)
        for batch in manifests.kept_batches(self.states):
            if batch > after:
                shutil.rmtree(manifests.folder(self.states, batch))
        sync([self.states / "manifests"])
        (self.checkpoint / _RESTORING).unlink()
        sync([self.checkpoint])


def results(output: Path, after: int) -> list[Path]:
    """Return the folders of results after batch `after`, including those that readers do not see yet."""
    places = (output, waiting(output))
    return [place / f"batch={batch}" for place in places for batch in numbers(place) if batch > after]


def _withdraw(output: Path, after: int) -> None:
    """Hide the results from readers at once, then delete them."""
    for folder in results(output, after):
        gone = output / ".staging" / f"gone-{folder.name}-{uuid.uuid4().hex}"
        gone.parent.mkdir(exist_ok=True)
        folder.rename(gone)
        shutil.rmtree(gone)
    sync(folder for folder in (output, waiting(output)) if folder.exists())
