"""The process of `test_trust`: a session on a cluster of Spark's own, and who comes to it. Prints one line of JSON.

    python -m tests.spark.strangers FOLDER [CONF]

in       executors that have joined: those of the session, 98 which knows the secret by a file, 99 which knows nothing
told     programs that were told the secret as an argument
heard    of rows that went from one executor to another, was the text seen on the wire? None: nobody may listen here
"""

import base64
import json
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from joinlib.spark import session
from joinlib.spark.boot import home
from tests.spark.executors import local_cluster

_ENTRY = Path(__file__).parents[2] / "docker" / "entrypoint"
_CONF = {
    **local_cluster(2, memory=700),
    "spark.executor.memory": "512m",
    "spark.shuffle.readHostLocalDisk": "false",  # as between machines
    "spark.sql.shuffle.partitions": "2",
}
_MARK = f"ANYBODY CAN READ THIS {uuid.uuid4()}".upper()  # made by the executors: it is told in small letters
_ALL_PACKETS, _LARGEST = 0x0003, 1 << 17
_PATIENCE_S = 300.0  # whoever is refused ends sooner


class Listener(threading.Thread):
    """Hears what goes over this machine's loopback until it is closed."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.heard = False
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PACKETS))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self._socket.bind(("lo", 0))

    def run(self) -> None:
        while not self.heard:
            self.heard = _MARK.encode() in self._socket.recv(_LARGEST)


def shuffled(spark: SparkSession) -> None:
    """Rows with the text go from each executor to the other."""
    rows = spark.range(0, 20_000, 1, 4).selectExpr("id", f"upper(concat('{_MARK.lower()}', id)) AS text")
    (found,) = rows.repartition(4, "id").selectExpr("count(DISTINCT text) AS n").collect()
    assert found.n == 20_000


def overheard(spark: SparkSession) -> bool | None:
    try:
        listener = Listener()
    except PermissionError:
        return None
    listener.start()
    shuffled(spark)
    listener.join(2)
    return listener.heard


class Comer:
    """An executor that the session has not asked for, as the image starts them."""

    def __init__(self, spark: SparkSession, folder: Path, number: str, *options: str) -> None:
        opened = spark._jvm.org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()  # type: ignore[union-attr]
        port = spark.sparkContext.getConf().get("spark.driver.port")
        (folder / "tini").write_text('#!/bin/sh\nshift\nexec "$@"\n')
        (folder / "tini").chmod(0o755)
        (folder / "numba").mkdir(exist_ok=True)
        known = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "JAVA_HOME": str(Path(home.java()).resolve().parents[1]),
            "SPARK_HOME": os.environ["SPARK_HOME"],
            "XDG_CACHE_HOME": str(folder),
            "NUMBA_CACHE_DIR": str(folder / "numba"),
            "SPARK_EXECUTOR_MEMORY": "512m",
            "SPARK_EXECUTOR_CORES": "1",
            "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{port}",
            "SPARK_EXECUTOR_ID": number,
            "SPARK_APPLICATION_ID": spark.sparkContext.applicationId,
            "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
            "SPARK_RESOURCE_PROFILE_ID": "0",
            "SPARK_EXECUTOR_POD_NAME": f"comer-{number}",
            **{f"SPARK_JAVA_OPT_{n}": option for n, option in enumerate([*opened.split(), *options])},
        }
        with (folder / f"{number}.log").open("wb") as log:
            self._process = subprocess.Popen(
                [_ENTRY, "executor"], env=known, cwd=folder, stdout=log, stderr=subprocess.STDOUT
            )
        self.number = number

    def wait(self, there: Callable[[], list[str]]) -> None:
        """Until it is among the executors, or has ended."""
        end = time.monotonic() + _PATIENCE_S
        while self.number not in there() and self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.2)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def told(secret: str) -> list[str]:
    """What programs of this machine have it among their arguments."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if secret.encode() in line.read_bytes():
                found.append(line.parent.name)
        except OSError:
            continue
    return found


def main(folder: Path, conf: dict[str, str]) -> dict[str, Any]:
    home.use()
    spark = session.start(1, {**_CONF, **conf})
    context = spark.sparkContext
    heard = overheard(spark)
    secret = context.getConf().get("spark.authenticate.secret") or ""
    (folder / "secret").write_bytes(base64.b64decode(secret))
    # What Spark tells each executor it asks for: see `SparkConf.isExecutorStartupConf`.
    open_to = [
        f"-D{key}={value}"
        for key, value in context.getConf().getAll()
        if key.startswith(("spark.auth", "spark.network")) and key != "spark.authenticate.secret"
    ]

    def executors() -> list[str]:
        ids = context._jsc.sc().getExecutorIds()
        return sorted(ids.apply(i) for i in range(ids.size()))

    knows = Comer(spark, folder, "98", *open_to, f"-Dspark.authenticate.secret.file={folder / 'secret'}")
    stranger = Comer(spark, folder, "99")
    try:
        knows.wait(executors)
        stranger.wait(executors)
        return {"in": executors(), "told": told(secret) if secret else [], "heard": heard}
    finally:
        knows.end()
        stranger.end()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), json.loads(sys.argv[2]))), flush=True)
    os._exit(0)
