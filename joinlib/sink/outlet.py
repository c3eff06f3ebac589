"""Publishes the result of each batch, in the driver: files here, rows of a table in `sink.postgres.outlet`.

For other outputs there is nothing to do.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from joinlib.sink.gather import Gathering, release
from joinlib.sink.publish import check_age, claim, publish
from joinlib.spec.output import Compact

BeforeCommit = Callable[[], None]


class StagedLost(Exception):
    """What tasks have staged is gone: the batch has to be computed again."""


class Outlet(Protocol):
    """Publishes the results of one run."""

    def open(self, identity: str, begun: int | None) -> None:
        """Claim the output for this checkpoint, whose newest batch that it has begun is `begun`."""
        ...

    def take(self, batch: int, files: Sequence[str]) -> None:
        """Publish what the tasks of a batch have staged, as their receipts name it; again, do nothing."""
        ...

    def look(self) -> None:
        """Do what is due. To be called now and then."""
        ...

    def close(self) -> None:
        """End the run: all that was taken is published."""
        ...


class BatchPublisher:
    """Publishes the result files of one run.

    Args:
        folder: The output folder; None if the output is not files.
        compact: When small batches are gathered into one folder; None publishes each batch at once.
        before_commit: Called before anything becomes visible; it raises if the run may no longer publish.
        mark: Returns a digest of what a batch has read, which tells it from another batch of the same number.
        synced: Whether what is published survives a power cut.
    """

    def __init__(
        self,
        folder: Path | None,
        compact: Compact | None,
        before_commit: BeforeCommit,
        mark: Callable[[int], str],
        *,
        synced: bool,
    ) -> None:
        self._folder, self._synced = folder, synced
        self._before_commit, self._mark = before_commit, mark
        self._gathering = Gathering(folder, compact, synced) if folder and compact else None

    def open(self, identity: str, begun: int | None) -> None:
        """Claim the folder for this checkpoint and release what still waits there.

        `begun` is the newest batch that the checkpoint has begun.

        Raises:
            SpecError: The folder belongs to another checkpoint.
            StateError: The folder holds batches that this checkpoint does not know.
        """
        if self._folder is not None:
            claim(self._folder, identity, self._synced)
            check_age(self._folder, begun)
            release(self._folder, self._synced)

    def take(self, batch: int, files: Sequence[str]) -> None:
        """Publish these staged files of a batch whose tasks are all done."""
        self._before_commit()
        if self._folder is None:
            return
        mark = self._mark(batch)
        if self._gathering is None:
            publish(self._folder, batch, files, mark, self._synced)
        else:
            self._gathering.add(batch, files, mark)

    def look(self) -> None:
        """Release waiting batches that are due. To be called now and then."""
        if self._gathering is not None and self._gathering.due:
            self.close()

    def close(self) -> None:
        """Release all waiting batches."""
        if self._gathering is not None:
            self._before_commit()
            self._gathering.end()
