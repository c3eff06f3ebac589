"""Spark's Python daemon, warm: what every worker imports is imported once, before the daemon forks them.

A worker then starts in milliseconds, and its garbage collection after every task has nothing old to look at.
Set as `spark.python.daemon.module`.
"""

import gc

import joinlib.spark.operator
import joinlib.spark.source  # noqa: F401 - imported so that workers find it loaded
from joinlib.warm import warm
from pyspark import daemon

if __name__ == "__main__":
    warm()
    gc.collect()
    gc.freeze()
    daemon.manager()
