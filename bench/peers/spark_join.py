"""Spark's own stream-stream inner join: how fast on our rows, with RocksDB or in-memory state?

One file of each input a batch, checkpoints on a local folder, and the checkpoint file manager that is
cheapest there (the default takes tens of milliseconds more for a state commit). Everything not named here is
Spark's default.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

sys.path.append(str(Path(__file__).parents[1]))
import command
import task

STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {
    "rocksdb": f"{STATE}.RocksDBStateStoreProvider",
    "memory": f"{STATE}.HDFSBackedStateStoreProvider",
}
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def session(provider: str, memory: str) -> SparkSession:
    """A local session on two cores."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.sql.streaming.stateStore.providerClass": PROVIDERS[provider],
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    return (
        SparkSession.builder.master("local[2]")
        .appName(f"spark-{provider}")
        .config(map=settings)
        .getOrCreate()
    )


def start(spark: SparkSession, args: argparse.Namespace, checkpoint: Path) -> StreamingQuery:
    """The join of the inputs into the noop sink, over all files that are there, one of each a batch."""
    schemas = task.read(args.data).inputs
    for name in args.inputs or schemas:
        files = spark.readStream.schema(schemas[name]).option("maxFilesPerTrigger", 1)
        files.parquet(str(args.data / name)).createOrReplaceTempView(name)
    results = spark.sql(args.query.read_text()).writeStream.format("noop")
    return results.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def run(args: argparse.Namespace) -> dict[str, Any]:
    """One run, as the outcome that bench/measure.py reads."""
    spark, checkpoint = session(args.provider, args.memory), args.work / "checkpoint"
    began = time.time()
    query = start(spark, args, checkpoint)
    ended = query.awaitTermination(args.limit)  # type: ignore[arg-type]  # it takes fractions
    total = time.time() - began
    batches = [batch for batch in query.recentProgress if batch.numInputRows]
    if not ended:
        query.stop()
    seconds = [batch.durationMs["triggerExecution"] / 1000 for batch in batches]
    outcome = {
        "system": f"spark-{args.provider}",
        "rows": sum(batch.numInputRows for batch in batches),
        "results": sum(batch.sink.numOutputRows for batch in batches),
        "seconds_total": total,
        "seconds_first_result": began + (total - sum(seconds)) * ended + seconds[0] - command.launched(),
        "batches": [
            {"rows": b.numInputRows, "seconds": s, "results": b.sink.numOutputRows}
            for b, s in zip(batches, seconds, strict=True)
        ],
        "stopped": not ended,
        "state_mb": sum(operator.memoryUsedBytes for operator in batches[-1].stateOperators) / 1e6,
        "disk_mb": sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file()) / 1e6,
        "notes": f"Spark {spark.version}, heap {args.memory}",
    }
    spark.stop()
    return outcome


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--provider", choices=PROVIDERS, required=True)
    parser.add_argument("--limit", type=float, default=86400.0, help="seconds until the query is stopped")
    parser.add_argument("--memory", default="12g", help="heap of the JVM")
    command.tell(parser.parse_args(), run)


if __name__ == "__main__":
    main()
