"""Over how many tasks, and where, are the units of a batch spread? May be another answer for each batch, but for one:

    a batch that was cut off runs again with the partitions that it had: of Kafka, each was a transaction

The number is noted in the checkpoint before a batch runs, see `batches`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from joinlib.files import whole
from joinlib.spark import batches, jar
from joinlib.spark.operator import Place, anywhere


@dataclass(frozen=True)
class Spread:
    """Of one batch."""

    partitions: int
    executors: Sequence[str] = ()  # on which each partition is best joined; none: it does not matter

    @property
    def place(self) -> Place:
        return self._located if len(self.executors) == self.partitions and jar.there() else anywhere

    def _located(self, rows: DataFrame) -> DataFrame:
        jvm = rows.sparkSession._jvm
        assert jvm is not None
        found = jvm.dev.streamjoin.Located.rows(rows._jdf, ",".join(self.executors))
        return DataFrame(found, rows.sparkSession)


class Spreading:
    """Of the batches of a checkpoint. `wanted` may be replaced at any time."""

    def __init__(self, checkpoint: Path, wanted: Spread, synced: bool = False) -> None:
        self.wanted, self._synced = wanted, synced
        self._file = checkpoint / batches.PARTITIONS
        self._partitions = batches.partitions(checkpoint / "spark")
        self._cut_off = batches.cut_off(checkpoint / "spark")

    def of(self, batch: int) -> Spread:
        """To be asked when the batch has begun and before it runs."""
        if batch == self._cut_off and self._partitions is not None:
            return Spread(self._partitions)
        wanted = self.wanted
        if wanted.partitions != self._partitions:
            self._note(wanted.partitions)
        return wanted

    def _note(self, partitions: int) -> None:
        with whole(self._file, hidden=True, synced=self._synced) as aside:
            aside.write_text(f"{partitions}\n")
        self._partitions = partitions
