"""Decides how many tasks run the units of a batch, and where. Each batch may differ, with one exception:

    a batch that was cut off runs again with the same partitions: with Kafka, each was a transaction

The number is written into the checkpoint before a batch runs (`joinlib.checkpoint.batches`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
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

    @property
    def place(self) -> Place:
        return self._located if len(self.executors) == self.partitions and jar.there() else anywhere

    def _located(self, rows: DataFrame) -> DataFrame:
        located = jar.known(rows.sparkSession._jvm, "Located")
        found = located.rows(rows._jdf, ",".join(self.executors))
        return DataFrame(found, rows.sparkSession)


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
            return Spread(self._partitions)
        wanted = Spread(1) if small else self.wanted
        if wanted.partitions != self._partitions:
            self._note(wanted.partitions)
        return wanted

    def _note(self, partitions: int) -> None:
        with whole(self._file, hidden=True, synced=self._synced) as aside:
            aside.write_text(f"{partitions}\n")
        self._partitions = partitions
