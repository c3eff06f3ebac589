"""A class archive for Spark's JVM: what it loads to run a first batch, loaded and verified once for all.

    python -m joinlib.spark.archive      makes it, in about half a minute

Spark then starts some seconds faster. Set-up makes it, or else the first run, in the background when it is over. It is a
cache: the JVM goes on without a word where it is missing or does not fit (its name holds what it depends on: Java, PySpark
and their folders). Where it cannot be made, a mark beside it, NAME.failed, has runs not try again; set-up does.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from joinlib.spark import home

_KEPT_S = 30 * 86_400.0  # since it was last used; one takes 180 MB
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
    """JVM options that use the archive, if there is one."""
    path = archive()
    return (
        [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if path.exists() else []
    )


def archive() -> Path:
    """Where the archive of this Java and this PySpark lies."""
    home.use()  # a class archive fits one class path only
    program = Path(home.java()).resolve()
    release = program.parent.parent / "release"
    known = [os.environ.get("SPARK_HOME", ""), str(program), release.read_text() if release.exists() else ""]
    name = hashlib.sha256("\n".join(known).encode()).hexdigest()[:16]
    return home.cache_folder() / "classes" / f"{name}.jsa"


def make_later() -> None:
    """Has it made where there is none, and could be, by a process that gives way to all others and outlives this one."""
    path = archive()
    if not path.exists() and not path.with_suffix(".failed").exists():
        command = ["nice", "-n", "19", sys.executable, "-m", __name__]
        none = subprocess.DEVNULL
        subprocess.Popen(command, stdin=none, stdout=none, stderr=none, start_new_session=True)


def make() -> None:
    """Runs a small job and has its JVM write down what it loaded, or raises. Nothing, while another process does."""
    path = archive()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    with aside.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if path.exists():
            return
        aside.unlink(missing_ok=True)  # of one that was cut off
        failed = path.with_suffix(".failed")
        try:
            with tempfile.TemporaryDirectory() as folder:
                spec = Path(folder) / "spec.yaml"
                spec.write_text(_SPEC)
                _run(spec, aside)
            aside.replace(path)
        except Exception:
            failed.touch()
            raise
        failed.unlink(missing_ok=True)
    for other in path.parent.glob("*.jsa"):  # of other versions; Java that maps one has it read
        if time.time() - max(other.stat().st_atime, other.stat().st_mtime) > _KEPT_S:
            other.unlink(missing_ok=True)


def _run(spec: Path, target: Path) -> None:
    from pyspark import SparkContext

    from joinlib.spark import session
    from joinlib.spark.compiled import compiled
    from joinlib.spark.job import started
    from joinlib.spec import load

    java = " ".join([*session.JAVA, f"-XX:ArchiveClassesAtExit={target}"])
    conf = {"spark.driver.extraJavaOptions": java}
    with started(compiled(load(spec), 1), lambda _: None, until_done=True, cores=1, conf=conf) as job:
        while not job.wait(0.2):
            pass
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends when its parent is gone, and writes the archive then
        if code := gateway.proc.wait(600):
            raise ChildProcessError(f"Java ended with {code}, so that its archive {target} may not be whole")


if __name__ == "__main__":
    make()
