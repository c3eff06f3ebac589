"""Makes the class archive for Spark's JVM (`boot.archive`): a small job's JVM dumps what it has loaded.

python -m joinlib.spark.train
"""

import fcntl
import tempfile
import time
from pathlib import Path

from pyspark import SparkContext

from joinlib.compiled import compiled
from joinlib.model.tuning import Tuning
from joinlib.spark import session
from joinlib.spark.boot import archive
from joinlib.spark.job import started
from joinlib.spec import load

_KEPT_S = 30 * 86_400.0  # since an archive was last used; each takes 180 MB
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


def make() -> None:
    """Make the archive if it does not exist, unless another process is making it.

    Raises whatever goes wrong, and leaves a mark so that runs do not try again.
    """
    path = archive.archive()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    with aside.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if path.exists():
            return
        aside.unlink(missing_ok=True)  # left by a process that was killed
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
    for other in path.parent.glob("*.jsa"):  # other versions; a JVM that maps one updates its access time
        if time.time() - max(other.stat().st_atime, other.stat().st_mtime) > _KEPT_S:
            other.unlink(missing_ok=True)


def _run(spec: Path, target: Path) -> None:
    java = " ".join([*session.JAVA, f"-XX:ArchiveClassesAtExit={target}"])
    conf = {"spark.driver.extraJavaOptions": java}
    plan = compiled(load(spec), 1, Tuning(direct_first=False))  # the JVM is to load what it runs
    with started(plan, lambda _: None, until_done=True, cores=1, conf=conf) as job:
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
