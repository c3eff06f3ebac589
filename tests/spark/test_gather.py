"""A job's few values on their way to the driver: who runs its task, and how long its answer waits."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from joinlib.spark.gather import last_column

pytestmark = pytest.mark.spark


def test_tasks_that_come_alone_go_to_one_worker(spark: SparkSession, tmp_path: Path) -> None:
    """Also after two ran side by side: in turns, they would close each other's producers."""
    assert len(ran(spark, tmp_path, 2)) == 2
    assert len({process for _ in range(4) for process in ran(spark, tmp_path, 1)}) == 1


def test_a_long_answer_is_not_held_up(spark: SparkSession, tmp_path: Path) -> None:
    """In a batch, the JVM waits for no acknowledgement between the pieces of an answer that it writes."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "in" / "0.parquet")
    prompt = list[bool]()

    def commit(rows: DataFrame, _: int) -> None:
        last_column(rows.selectExpr("CAST('x' AS BINARY)"))
        server = JavaObject("GATEWAY_SERVER", rows._jdf._gateway_client)
        prompt.append(server.getCallbackClient().getPerThreadConnection().getSocket().getTcpNoDelay())

    rows = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "in"))
    writer = rows.writeStream.foreachBatch(commit).option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    assert prompt == [True]


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
