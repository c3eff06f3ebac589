"""What the driver does with the result of each batch: nothing, unless it is files."""

from collections.abc import Callable, Sequence

from joinlib.spark import batches
from joinlib.spark.compiled import Compiled
from joinlib.spark.gather import Gathering, release
from joinlib.spark.publish import check_age, claim, publish

BeforeCommit = Callable[[], None]


class Outlet:
    """That of one run. `before_commit`: is called before anything becomes visible, and raises if it must not any more."""

    def __init__(self, plan: Compiled, before_commit: BeforeCommit) -> None:
        self._folder, self._synced = plan.join.emit.folder, plan.join.tuning.sync
        self._log, self._before_commit = plan.checkpoint / "spark", before_commit
        output = plan.document.spec.output.files
        compact = output.compact if output else None
        self._gathering = Gathering(self._folder, compact, self._synced) if self._folder and compact else None

    def open(self, identity: str) -> None:
        """Takes the folder for this checkpoint, if it is one's own and not ahead of it. What waited there is released."""
        if self._folder is not None:
            claim(self._folder, identity, self._synced)
            check_age(self._folder, batches.begun(self._log))
            release(self._folder, self._synced)

    def take(self, batch: int, files: Sequence[str]) -> None:
        """All tasks of the batch are done; these files of theirs count."""
        self._before_commit()
        if self._folder is None:
            return
        mark = batches.mark(self._log, batch)
        if self._gathering is None:
            publish(self._folder, batch, files, mark, self._synced)
        else:
            self._gathering.add(batch, files, mark)

    def look(self) -> None:
        """To be called now and then: whatever has waited for long enough is released."""
        if self._gathering is not None and self._gathering.due:
            self.close()

    def close(self) -> None:
        """Nothing waits any longer."""
        if self._gathering is not None:
            self._before_commit()
            self._gathering.end()
