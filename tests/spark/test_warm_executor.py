"""Executors that take tasks only when they are warm, and the driver's log, on a cluster of Spark's own in one machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.executors import local_cluster

pytestmark = pytest.mark.spark

_ASK = """
import json, os, sys, time
from pathlib import Path
from joinlib.spark import session
from joinlib.spark.boot import home, jar
from joinlib.spark.executors import ExecutorPool

home.use()
conf = {**json.loads(sys.argv[1]), "spark.executor.memory": "512m", "spark.executor.cores": "1",
        "spark.executorEnv.NAMED": "so", **jar.warming()}
spark = session.start(1, conf)

def daemons(batches):
    # Of this executor: those that workers of tasks come from, and of which this worker comes.
    import pyarrow as pa
    def parent(pid): return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    jvm, found = parent(os.getppid()), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if parent(entry.name) == jvm and b"pyspark.worker" in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError: continue
    for batch in batches: yield pa.record_batch([[len(found)] * batch.num_rows], ["id"])

count = [row.id for row in spark.range(0, 1, 1, 1).mapInArrow(daemons, "id BIGINT").collect()]
plugin = spark._jvm.dev.streamjoin.WarmExecutor
pool = ExecutorPool(spark, 1, 1)
deadline = time.monotonic() + 60
while not pool.heaps() and time.monotonic() < deadline: time.sleep(0.05)
heaps = {executor: [heap.limit > heap.used > 10**6, heap.collected_s >= 0] for executor, heap in pool.heaps().items()}
print(json.dumps({"heaps": heaps, "daemons": count, "ready": pool.ready(), "known": [plugin.has("0"), plugin.has("1")]}))

jvm = spark._jvm
log = jvm.org.slf4j.LoggerFactory.getLogger("org.apache.spark.util.Utils")
thrown = jvm.io.fabric8.kubernetes.client.KubernetesClientTimeoutException
log.error("the pod is not ready", thrown("Pod", "driver", "space", 1, jvm.java.util.concurrent.TimeUnit.SECONDS))
log.error("it is another error", jvm.java.lang.IllegalStateException("with its reason"))
spark.stop()
"""


def test_tasks_find_the_daemon_that_was_started_for_them(tmp_path: Path) -> None:
    """One daemon: with other variables than a task's there would be two. The driver knows who is warm, how full its heap is, and of nobody else; what
    Spark says of a pod that cannot be ready yet is not logged, and all other errors are.
    """
    root = str(Path(__file__).parents[2])
    environment = {
        **os.environ,
        "STREAMJOIN_LOCAL_DIR": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": root,
    }
    done = subprocess.run(
        [sys.executable, "-c", _ASK, json.dumps(local_cluster(1))],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "heaps": {"0": [True, True]},
        "daemons": [1],
        "ready": ["0"],
        "known": [True, False],
    }
    assert "it is another error" in done.stderr
    assert "with its reason" in done.stderr
    assert "the pod is not ready" not in done.stderr
