"""The running task's batch, partition and attempt, as Spark knows them."""

from dataclasses import dataclass

from pyspark import TaskContext


@dataclass(frozen=True)
class Standing:
    """Spark's description of the running task."""

    partition: int
    attempt: int  # unique among all attempts of a Spark session
    batch: int | None  # None outside of a streaming query


def context() -> Standing:
    """Return the running task's; outside of a task, partition 0 and attempt 0."""
    task = TaskContext.get()
    if task is None:
        return Standing(0, 0, None)
    batch = task.getLocalProperty("streaming.sql.batchId")
    return Standing(task.partitionId(), task.taskAttemptId(), None if batch is None else int(batch))
