"""Spark's Python daemon, warmed up: what every worker imports is imported once, before the daemon forks them.

A worker then starts in milliseconds, and its garbage collection after every task has no old objects to scan (`loading`).
Set as `spark.python.daemon.module`. Spark starts a daemon for each kind of worker and passes the kind as the
argument; only the kind that runs tasks is worth warming up, the others work once.
"""

import importlib
import resource
import sys

from pyspark import daemon

from joinlib.lean import lean, loading

_TASKS = "pyspark.worker"
# What tasks of any stage run. Loaded by a worker, each would cost the first batch a tenth of a second.
_LOADED = ("joinlib.engine.reading", "joinlib.engine.operators", "joinlib.engine.kinds")


def warm_up() -> None:
    with loading():
        lean()
        for module in _LOADED:
            importlib.import_module(module)
        from joinlib.warm import warm

        warm()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each index that a worker maps holds a file open.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    if sys.argv[1:2] == [_TASKS]:
        warm_up()
    daemon.manager()
