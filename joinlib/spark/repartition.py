"""Another number of state partitions for a checkpoint whose query rests. Laws: state and output stay what they are; killed at
any point it is gone on with, by whoever opens the checkpoint next.

    batch N done ─► offsets/N+1: as N, but with other partitions ─► manifests to their new partitions ─► commits/N+1

What moves are manifests, one small row a unit: segments stay where they are. The batch N+1 reads nothing and emits nothing, so
sinks see one number that has no rows. Cost: a second or two, whatever the size of the state.
"""

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from joinlib.errors import NotReady
from joinlib.spark import batches


def finish(spark: SparkSession, checkpoint: Path) -> None:
    """Goes on with a repartition that was cut off."""
    if (partitions := batches.half_repartitioned(checkpoint / "spark")) is not None:
        _run(spark, checkpoint, partitions)


def change(spark: SparkSession, checkpoint: Path, partitions: int) -> bool:
    """Whether there was something to do. No query may run, and the last batch that was begun must be done."""
    known = batches.partitions(checkpoint / "spark")
    if known is None or known == partitions:
        return False
    assert batches.cut_off(checkpoint / "spark") is None
    _run(spark, checkpoint, partitions)
    return True


def _run(spark: SparkSession, checkpoint: Path, partitions: int) -> None:
    try:
        spark._streamingCheckpointManager.repartition(str(checkpoint / "spark"), partitions)
    except PySparkException as error:
        why = str(error).partition("\n")[0]
        raise NotReady(
            f"checkpoint {checkpoint}: the repartition failed; run again, it goes on: {why}"
        ) from error
