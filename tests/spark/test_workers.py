"""Python workers: which of those that wait takes the next task."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from joinlib.spark.gather import last_column


def test_tasks_that_come_alone_go_to_one_worker(spark: SparkSession, tmp_path: Path) -> None:
    """Also after two ran side by side: in turns, they would close each other's producers."""
    assert len(ran(spark, tmp_path, 2)) == 2
    assert len({process for _ in range(4) for process in ran(spark, tmp_path, 1)}) == 1


def ran(spark: SparkSession, folder: Path, tasks: int) -> set[bytes]:
    """The processes of a job's tasks, which wait for each other."""
    met = folder / str(tasks)
    met.mkdir(exist_ok=True)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            (met / str(os.getpid())).touch()
            while len(os.listdir(met)) < tasks:
                time.sleep(0.01)
            yield pa.record_batch({"process": [str(os.getpid()).encode()]})

    return set(last_column(spark.range(0, tasks, 1, tasks).mapInArrow(task, "process BINARY")))
