"""A class archive for Spark's JVM: what it loads to run a first batch, loaded and verified once for all.

    python -m joinlib.spark.archive      makes it, in about half a minute, by a small job

Spark then starts some seconds faster. It is a cache: a JVM that finds none writes it when it ends, after its user has
gone on (a file that is not complete has no header, and nobody takes it). Its name holds what it depends on: Java, PySpark
and their folders.
"""

import contextlib
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from joinlib.spark import home

_SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: archive}
spec:
  sql: SELECT a.k, a.v AS a, b.v AS b FROM a JOIN b ON a.k = b.k
  inputs:
    a: {schema: "k BIGINT, v STRING", generator: {rows: 1000, keys: 100}}
    b: {schema: "k BIGINT, v STRING", generator: {rows: 1000, keys: 100}}
  output: {noop: {}}
  batch: {maxRows: 500}
  checkpoint: {path: checkpoint}
"""


def options() -> list[str]:
    """JVM options that use the archive, or make it."""
    path = archive()
    if _whole(path):
        use = "SharedArchiveFile"
    else:
        use = "ArchiveClassesAtExit"
        with contextlib.suppress(OSError):  # the JVM cannot write it then, which is no harm
            path.parent.mkdir(parents=True, exist_ok=True)
    return [shlex.quote(f"-XX:{use}={path}"), "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def _whole(path: Path) -> bool:
    """Its header is written last: a JVM that was killed while it wrote has left zeros."""
    try:
        with path.open("rb") as file:
            return any(file.read(4))
    except FileNotFoundError:
        return False


def archive() -> Path:
    """Where the archive of this Java and this PySpark lies."""
    home.use()  # a class archive fits one class path only
    program = Path(home.java()).resolve()
    release = program.parent.parent / "release"
    known = [os.environ.get("SPARK_HOME", ""), str(program), release.read_text() if release.exists() else ""]
    name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    return home.cache_folder() / "classes" / f"{name}.jsa"


def make() -> None:
    """Runs a small job, and waits for its JVM to write down what it loaded."""
    if _whole(archive()):
        return
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.yaml"
        spec.write_text(_SPEC)
        _run(spec)


def _run(spec: Path) -> None:
    from pyspark import SparkContext

    from joinlib.spark.compiled import compiled
    from joinlib.spark.job import started
    from joinlib.spec import load

    with started(compiled(load(spec), 1), lambda _: None, until_done=True, cores=1) as job:
        while not job.wait(0.2):
            pass
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends when its parent is gone, and writes the archive then
        gateway.proc.wait(120)


if __name__ == "__main__":
    if "--quiet" in sys.argv:
        subprocess.run([sys.executable, "-m", "joinlib.spark.archive"], check=False, capture_output=True)
    else:
        make()
