"""Executors in processes of their own, on this machine."""

from jobs.spark_conf import EXECUTOR_JAVA
from joinlib.spark.boot import archive


def local_cluster(executors: int, cores: int = 1, memory: int = 1024) -> dict[str, str]:
    """Return the settings for so many; their JVMs start as those of a cluster do, in half of the CPU time.

    Args:
        executors: Their number.
        cores: Task slots of each.
        memory: MiB of each.
    """
    return {
        "spark.master": f"local-cluster[{executors},{cores},{memory}]",
        "spark.executor.extraJavaOptions": " ".join([*EXECUTOR_JAVA, *archive.options()]),
    }
