"""The Spark session of a job: what is set, and why."""

import contextlib
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from joinlib.spark import archive, home, jar, nursery, trust

# C1 alone: rows never pass through the JVM, so its code need not be the best, and two cores have better to do.
JAVA = ("-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1", "-Djdk.lang.Process.launchMechanism=VFORK")

_STREAMING = "spark.sql.streaming."


def settings() -> dict[str, str]:
    """What every StreamJoin query needs, on a laptop and on a cluster."""
    return {
        "spark.sql.session.timeZone": "UTC",
        # Partitions are where units are: none may be joined with another, and none planned anew while the batch runs.
        "spark.sql.adaptive.enabled": "false",
        _STREAMING + "minBatchesToRetain": "8",
        # Other than the default it forks no process for a link; it looks and then renames, which `LocalFiles` makes exclusive.
        _STREAMING + "checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # Whoever stops a query that is stuck gets an error, instead of being stuck as well.
        _STREAMING + "stopTimeout": "60s",
        # Spark sees a few dozen rows a batch. Making Java of its own expressions, in each task anew, costs a fifth of the task.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        # Two attempts of one task at once would only fight for the unit's lock.
        "spark.speculation": "false",
        # Workers are forked from a daemon that has imported and compiled everything.
        "spark.python.daemon.module": "joinlib.spark.daemon",
        "spark.python.use.daemon": "true",
        # One daemon for all of them: only some operators would set the variable behind this, and get a daemon of their own.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        # Blocks are dense columns: compressing them costs more than it saves.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.ui.showConsoleProgress": "false",
        # Files of shuffles go when all of the heap is collected, which small batches hardly ever make happen.
        "spark.cleaner.periodicGC.interval": "5min",
        # Kept for a page that there is not: by default 1,000 executions and stages, and 100,000 tasks.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "100",
        **jar.settings(),
        **trust.settings(),
    }


def launch(conf: Mapping[str, str]) -> None:
    """Has a JVM start for a session on this machine, while the caller goes on; `start` waits for it.

    conf: of Spark, as for `start`, which tells what goes wrong here.
    """

    def run() -> None:
        with contextlib.suppress(Exception):
            known = {**_machine(), **conf}
            os.environ["PYSPARK_PYTHON"] = _python(known)
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll([*known.items()]))

    thread = threading.Thread(target=run, name="launch", daemon=True)
    _launching.append(thread)
    thread.start()


_launching: list[threading.Thread] = []


def start(cores: int, conf: Mapping[str, str] | None = None, *, synced: bool = False) -> SparkSession:
    """A session on this machine, unless `conf` says otherwise, such as by `joinlib.spark.cluster.confs`.

    synced: what Spark logs of a stream survives a power cut.
    """
    for thread in _launching:
        thread.join()
    chosen = {
        **_machine(),  # first: settings depend on Spark's home
        **settings(),
        **jar.syncing(synced),
        "spark.app.name": "streamjoin",
        "spark.master": f"local[{cores}]",
        **(conf or {}),
    }
    os.environ["PYSPARK_PYTHON"] = _python(chosen)
    builder = SparkSession.builder
    for key, value in {**chosen, **trust.secret(chosen)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _machine() -> dict[str, str]:
    """What the JVM of a session on this machine must know when it starts."""
    home.use()
    return {
        "spark.master": "local",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join([*JAVA, *archive.options(), *_temporary()]),
    }


def _python(conf: Mapping[str, str]) -> str:
    """What Spark starts as Python: workers must find what this process finds."""
    return nursery.begin() if re.match(r"local(\[.*)?$", conf["spark.master"]) else sys.executable


def _temporary() -> list[str]:
    """The JVM does not know TMPDIR."""
    folder = os.environ.get("TMPDIR")
    return [shlex.quote(f"-Djava.io.tmpdir={folder}")] if folder else []


def warm_workers(spark: SparkSession, cores: int) -> None:
    """Has Spark start its Python daemon and a worker for each core, while the caller goes on to plan the query."""

    def run() -> None:
        with contextlib.suppress(Exception):  # it only saves time, and the session may end before it does
            spark.range(0, cores, 1, cores).mapInArrow(_same, "id BIGINT").collect()

    threading.Thread(target=run, daemon=True).start()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def default_partitions(units: int, cores: int) -> int:
    """Partitions of the units: the largest power of two that is neither above the cores nor above the units."""
    return min(units, 1 << (max(cores, 1).bit_length() - 1))
