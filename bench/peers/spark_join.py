"""Spark's own stream-stream inner join: how fast on our rows, with RocksDB or in-memory state?

One file of each input a batch, checkpoints on a local folder, and the checkpoint file manager that is
cheapest there (the default takes tens of milliseconds more for a state commit). Everything not named here is
Spark's default.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

sys.path.append(str(Path(__file__).parents[1]))
import task

QUERY = Path(__file__).parents[1] / "query.sql"
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


def start(spark: SparkSession, data: Path, query: Path, checkpoint: Path) -> StreamingQuery:
    """The join of all inputs into the noop sink, over all files that are there, one of each a batch."""
    for name, schema in task.read(data).inputs.items():
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(data / name))
        rows.createOrReplaceTempView(name)
    results = (
        spark.sql(query.read_text()).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    )
    return results.trigger(availableNow=True).start()


def run(provider: str, data: Path, sql: Path, checkpoint: Path, memory: str, limit: float) -> dict[str, Any]:
    """One run, as the outcome that bench/run.py reads."""
    launched = float(os.environ.get("BENCH_LAUNCHED", time.time()))
    spark = session(provider, memory)
    began = time.time()
    query = start(spark, data, sql, checkpoint)
    ended = query.awaitTermination(limit)  # type: ignore[arg-type]  # it takes fractions
    total = time.time() - began
    batches = [batch for batch in query.recentProgress if batch.numInputRows]
    if not ended:
        query.stop()
    seconds = [batch.durationMs["triggerExecution"] / 1000 for batch in batches]
    outcome = {
        "system": f"spark-{provider}",
        "rows": sum(batch.numInputRows for batch in batches),
        "results": sum(batch.sink.numOutputRows for batch in batches),
        "seconds_total": total,
        "seconds_first_result": began + (total - sum(seconds)) * ended + seconds[0] - launched,
        "batches": [
            {"rows": b.numInputRows, "seconds": s, "results": b.sink.numOutputRows}
            for b, s in zip(batches, seconds, strict=True)
        ],
        "stopped": not ended,
        "state_mb": sum(operator.memoryUsedBytes for operator in batches[-1].stateOperators) / 1e6,
        "disk_mb": sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file()) / 1e6,
        "notes": f"Spark {spark.version}, heap {memory}",
    }
    spark.stop()
    return outcome


def main() -> None:
    """Run, print the outcome as one line, leave nothing behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", choices=PROVIDERS, required=True)
    parser.add_argument("--data", type=Path, required=True, help="a folder as bench/task.py describes it")
    parser.add_argument("--query", type=Path, default=QUERY)
    parser.add_argument("--limit", type=float, default=86400.0, help="seconds until the query is stopped")
    parser.add_argument("--out", type=Path, help="write the outcome here as well")
    parser.add_argument(
        "--work", type=Path, required=True, help="a folder for the checkpoint, removed afterwards"
    )
    parser.add_argument("--memory", default="12g", help="heap of the JVM")
    args = parser.parse_args()
    try:
        line = json.dumps(
            run(args.provider, args.data, args.query, args.work / "checkpoint", args.memory, args.limit)
        )
    finally:
        shutil.rmtree(args.work, ignore_errors=True)
    if args.out:
        args.out.write_text(line + "\n")
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
