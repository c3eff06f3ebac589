"""Which batches of a checkpoint are whole? Those that are kept, one of which the job can go back to.

    check     before a run: what the newest batch says of itself can be read
    damage    of one batch, down to each segment that its manifests name
    forget    everything that came behind a batch is gone

Going back is cut off nowhere: `CHECKPOINT/restoring` says that it was begun, and nothing runs until it is done. Nothing else
has to go back: logs of inputs only grow, and offsets say how far they were read; indexes are compared with the manifest by
their tokens; and dead letters are named by what was read, so a batch that runs again writes them again.
"""

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from joinlib.errors import StateError
from joinlib.files import sync, whole
from joinlib.spark import batches
from joinlib.spark.publish import numbers, waiting
from joinlib.spark.task import state_folder, unit_folder
from joinlib.state import manifests, segment
from joinlib.state.manifest import decode

_RESTORING = "restoring"


@dataclass(frozen=True)
class History:
    """Of one checkpoint. `operators`: stages, and groups behind them."""

    checkpoint: Path
    operators: int

    @property
    def spark(self) -> Path:
        return self.checkpoint / "spark"

    @property
    def states(self) -> Path:
        return self.checkpoint / "state"

    def batches(self) -> list[int]:
        """Those that are done and of which there are manifests, whole or not, newest first."""
        there = set(manifests.kept(self.states))
        return [batch for batch in reversed(batches.all_done(self.spark)) if batch in there]

    def check(self) -> None:
        """Raises StateError if the job cannot go on from the newest batch. O(bytes of manifests)."""
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
        """What is wrong with a batch that is done; empty: nothing. O(bytes of its state), less the segments in `known`."""
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

    # --- going back --------------------------------------------------------------------------------------------------

    def going_back(self) -> int | None:
        """The batch to which somebody began to go back."""
        file = self.checkpoint / _RESTORING
        return int(file.read_text()) if file.exists() else None

    def forget(self, after: int, output: Path | None) -> None:
        """Drops all that came behind batch `after`, results among it. Cut off, it is to be called again."""
        with whole(self.checkpoint / _RESTORING, synced=True) as aside:
            aside.write_text(f"{after}\n")
        if output is not None:
            _withdraw(output, after)
        batches.forget(self.spark, after)
        for batch in manifests.kept(self.states):
            if batch > after:
                shutil.rmtree(manifests.folder(self.states, batch))
        sync([self.states / "manifests"])
        (self.checkpoint / _RESTORING).unlink()
        sync([self.checkpoint])


def results(output: Path, after: int) -> list[Path]:
    """The folders of results that came behind a batch, also of those that readers do not see yet."""
    places = (output, waiting(output))
    return [place / f"batch={batch}" for place in places for batch in numbers(place) if batch > after]


def _withdraw(output: Path, after: int) -> None:
    """Out of readers' sight at once, then away."""
    for folder in results(output, after):
        gone = output / ".staging" / f"gone-{folder.name}-{uuid.uuid4().hex}"
        gone.parent.mkdir(exist_ok=True)
        folder.rename(gone)
        shutil.rmtree(gone)
    sync(folder for folder in (output, waiting(output)) if folder.exists())
