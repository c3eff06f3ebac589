"""The Spark session of a job: its settings, and the reason for each."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from py4j.protocol import ERROR, INPUT_CONVERTER, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from joinlib.checkpoint import batches
from joinlib.spark import trust
from joinlib.spark.boot import archive, home, jar, prefork
from joinlib.spark.mapped import Batches, mapped

# Only the C1 compiler: rows never pass through the JVM, so fast code does not pay for the CPU that C2 takes. For the
# same reason the heap begins small, and grows where it must: by default what batches leave behind fills some 500 MB before
# it is collected, and the parallel collector marks in 70 MB more. Nothing is collected because classes are loaded.
JAVA = (
    "-XX:+UseSerialGC",
    "-Xms96m",
    "-XX:MaxHeapFreeRatio=40",
    "-XX:MetaspaceSize=128m",
    "-XX:TieredStopAtLevel=1",
    "-Djdk.lang.Process.launchMechanism=VFORK",
)

_STREAMING = "spark.sql.streaming."
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum."
_SOCKETS = "spark.python.unix.domain.socket."  # between the JVM and Python processes
_LONGEST = 60  # bytes of a folder in which Spark makes sockets
_LAST_S = 10.0  # for a JVM to end
_SQL = "org.apache.spark.sql."
_ASKED = (
    "PythonUtils",
    "SimplePythonFunction",
    "functions",
    _SQL + "classic.SparkSession",
    _SQL + "classic.SparkSession$",
    _SQL + "execution.python.UserDefinedPythonFunction",
)
JVM_GONE = (Py4JNetworkError, ConnectionError, EOFError)  # what a call into a dead JVM raises


def settings() -> dict[str, str]:
    """Return the settings that every StreamJoin query needs, on a laptop and on a cluster."""
    return {
        "spark.sql.session.timeZone": "UTC",
        # Units belong to partitions: Spark must neither merge partitions nor replan them while a batch runs.
        "spark.sql.adaptive.enabled": "false",
        _STREAMING + "minBatchesToRetain": str(batches.KEPT),
        # Unlike the default, it forks no process to make a link. It checks for the target and then renames,
        # which `LocalFiles` makes exclusive.
        _STREAMING + "checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # Stopping a query that hangs fails after this time instead of hanging as well.
        _STREAMING + "stopTimeout": "60s",
        # Spark itself sees a few dozen rows per batch. Generating Java code for its expressions in each task
        # costs a fifth of the task's time.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        # Two attempts of one task at once would only fight for the unit's lock.
        "spark.speculation": "false",
        # Workers are forked from a daemon that has imported and compiled everything.
        "spark.python.daemon.module": "joinlib.spark.boot.daemon",
        "spark.python.use.daemon": "true",
        # One daemon for all operators: only some of them set the environment variable behind this option, and
        # each distinct environment gets its own daemon.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        # Over TCP the kernel delays acknowledgements: 40 ms in each wave of tasks.
        _SOCKETS + "enabled": "true",
        # Tasks that run again give the same blocks, but other figures of how long they took, by which Spark would hold them
        # for other rows: it would end a batch of which some results are told, and hash every block to find that out.
        _CHECKSUM + "enabled": "false",
        _CHECKSUM + "enableFullRetryOnMismatch": "false",
        # Blocks are dense columns: compressing them costs more than it saves.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.broadcast.compress": "false",  # a task's code, some kilobytes, which stays on this machine or goes once
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.ui.showConsoleProgress": "false",
        # Shuffle files are removed after a full garbage collection, which small batches hardly ever trigger.
        "spark.cleaner.periodicGC.interval": "5min",
        # Kept only for the web UI, which is off: by default 1,000 executions and stages, and 100,000 tasks.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "100",
        **jar.settings(),
        **trust.settings(),
    }


def start(cores: int, conf: Mapping[str, str] | None = None, *, synced: bool = False) -> SparkSession:
    """Return a session on this machine, unless `conf` says otherwise, as on Kubernetes.

    Args:
        cores: The number of task slots.
        conf: Spark settings that override the defaults.
        synced: Whether what Spark logs of a stream survives a power cut.
    """
    chosen = {
        **_machine(),  # first: the other settings depend on Spark's home
        **settings(),
        **jar.syncing(synced),
        "spark.app.name": "streamjoin",
        "spark.master": f"local[{cores}]",
        **(conf or {}),
    }
    os.environ["PYSPARK_PYTHON"] = python = _python(chosen)
    chosen |= _sockets(python)
    _convert_simply()
    builder = SparkSession.builder
    for key, value in {**chosen, **trust.secret(chosen)}.items():
        builder = builder.config(key, value)
    known = SparkContext._gateway
    spark = builder.getOrCreate()
    if SparkContext._gateway is not known:
        _notice_its_end(SparkContext._gateway)
        _remember(SparkContext._jvm)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _notice_its_end(gateway: Any) -> None:
    """Let calls into a JVM that has ended raise one of `JVM_GONE`.

    Where the connection is reset, as that of a killed process may be, py4j returns an error that says nothing.
    """
    client, process = gateway._gateway_client, gateway.proc
    send = client.send_command

    def sent(*command: Any, **options: Any) -> Any:
        answer = send(*command, **options)
        if answer == ERROR and _ends(process):
            raise ConnectionResetError("the JVM has ended")
        return answer

    client.send_command = sent


def _convert_simply() -> None:
    """Let what is sent to the JVM be asked for its type only.

    To see whether there is NumPy, whose arrays are converted, PySpark loads what its own tests need, pandas with it: a third
    of a second of a session's start.
    """
    for converter in INPUT_CONVERTER:
        if isinstance(converter, NumpyScalarConverter):
            converter.can_convert = lambda obj: isinstance(obj, np.generic)  # type: ignore[method-assign]
        elif isinstance(converter, NumpyArrayConverter):
            converter.can_convert = lambda obj: isinstance(obj, np.ndarray) and obj.ndim == 1  # type: ignore[method-assign]


def _remember(jvm: Any) -> None:
    """Keep what PySpark asks the JVM for by name in each batch.

    py4j asks anew each time, and the JVM looks through all jars of Spark for such a class in another package.
    """
    for name in _ASKED:
        setattr(jvm, name, getattr(jvm, name))


def _ends(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended, or does within a second: its connections go first."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    return process.poll() is not None


def _machine() -> dict[str, str]:
    """Return the settings that the JVM of a local session must have when it starts."""
    home.use()
    return {
        "spark.master": "local",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join([*JAVA, *archive.options(), *_temporary()]),
    }


def alive() -> bool:
    """Return whether the JVM of this process's session answers. One that was killed may take a while to be gone."""
    gateway = SparkContext._gateway
    if gateway is None or gateway.proc.poll() is not None:
        return False
    try:
        gateway.jvm.System.nanoTime()
    except JVM_GONE:
        return False
    return True


def end(spark: SparkSession) -> None:
    """End a session and its JVM, which may be dead; `start` may begin another."""
    with contextlib.suppress(*JVM_GONE):
        spark.stop()
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None  # as `stop` leaves it, but not where the JVM is dead
    SparkSession._instantiatedSession = None
    if gateway is not None:
        with contextlib.suppress(*JVM_GONE):
            gateway.shutdown()
        gateway.proc.stdin.close()  # by which the JVM knows that it is to end
        try:
            gateway.proc.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()


def on_one_machine(spark: SparkSession | None, conf: Mapping[str, str]) -> bool:
    """Return whether all tasks run in one executor, on this machine, and so share the indexes of units.

    In this session, or in one that is started with these settings.
    """
    master = spark.sparkContext.master if spark else conf.get("spark.master", "local")
    return _is_local(master or "")


def _is_local(master: str) -> bool:
    return bool(_LOCAL.match(master))


_LOCAL = re.compile(r"local(\[.*)?$")


def _python(conf: Mapping[str, str]) -> str:
    """Return the program that Spark starts as Python: workers must find this process's packages."""
    return prefork.begin() if _is_local(conf["spark.master"]) else sys.executable


def _sockets(python: str) -> dict[str, str]:
    """Return where sockets lie: locally in the prefork's folder, which is removed with it; none in too long a folder."""
    local = python != sys.executable
    folder = str(Path(python).parent) if local else tempfile.gettempdir()
    if len(os.fsencode(folder)) > _LONGEST:
        return {_SOCKETS + "enabled": "false"}
    return {_SOCKETS + "dir": folder} if local else {}


def _temporary() -> list[str]:
    """Return the JVM option for TMPDIR, which the JVM ignores."""
    folder = os.environ.get("TMPDIR")
    return [shlex.quote(f"-Djava.io.tmpdir={folder}")] if folder else []


def warm_workers(spark: SparkSession, cores: int) -> None:
    """Start Spark's Python daemon and a worker per core in the background, while the caller plans."""

    def run() -> None:
        with contextlib.suppress(Exception):  # it only saves time, and the session may end first
            rows = spark.range(0, cores, 1, cores)
            mapped(rows, ["id"], _same, rows.schema).collect()

    threading.Thread(target=run, daemon=True).start()


@cache
def end_planners(spark: SparkSession) -> None:
    """End the Python processes that a session needs until its first batch; once for each session."""
    if jar.there():
        jar.known(spark._jvm, "Workers").once()


def _same(batches: Batches) -> Batches:
    return batches


def default_partitions(units: int, cores: int) -> int:
    """Return the number of partitions: the largest power of two that exceeds neither cores nor units."""
    return min(units, 1 << (max(cores, 1).bit_length() - 1))
