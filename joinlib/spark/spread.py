"""Decides how many tasks run the units of a batch, and where. Each batch may differ, with one exception:

    a batch that was cut off runs again with the same partitions: with Kafka, each was a transaction

The number is written into the checkpoint before a batch runs (`joinlib.checkpoint.batches`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame

from joinlib.checkpoint import batches
from joinlib.files import whole
from joinlib.spark.boot import jar
from joinlib.spark.operator import Place, anywhere


@dataclass(frozen=True)
class Spread:
    """The number of partitions of one batch, and where they run."""

    partitions: int
    executors: Sequence[str] = ()  # the preferred executor of each partition; empty means no preference
    readers: Sequence[str] = ()  # the executors that read the inputs; empty means any

    @property
    def place(self) -> Place:
        return located(self.executors if len(self.executors) == self.partitions else ())

    @property
    def reading(self) -> Place:
        return located(self.readers)


def located(executors: Sequence[str]) -> Place:
    """Return what prefers these executors for the partitions of rows, in turn; none means no preference."""
    if not executors or not jar.there():
        return anywhere

    def place(rows: DataFrame) -> DataFrame:
        java = jar.known(rows.sparkSession._jvm, "Located")
        return DataFrame(java.rows(rows._jdf, ",".join(executors)), rows.sparkSession)

    return place


class Spreading:
    """Decides the spread of each batch of a checkpoint. `wanted` may be replaced at any time."""

    def __init__(self, checkpoint: Path, wanted: Spread, synced: bool = False) -> None:
        self.wanted, self._synced = wanted, synced
        self._file = checkpoint / batches.PARTITIONS
        self._partitions = batches.partitions(checkpoint / "spark")
        self._cut_off = batches.cut_off(checkpoint / "spark")

    def of(self, batch: int, small: bool = False) -> Spread:
        """Return the spread of a batch, small or not. Call it once the batch has begun and before it runs."""
        if not small and batch == self._cut_off and self._partitions is not None:
            return replace(self.wanted, partitions=self._partitions, executors=())
        wanted = replace(self.wanted, partitions=1) if small else self.wanted
        if wanted.partitions != self._partitions:
            self._note(wanted.partitions)
        return wanted

    def _note(self, partitions: int) -> None:
        with whole(self._file, hidden=True, synced=self._synced) as aside:
            aside.write_text(f"{partitions}\n")
        self._partitions = partitions
