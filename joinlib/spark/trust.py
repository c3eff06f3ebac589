"""Who may speak with Spark's processes, and who can listen? Only those who know the session's secret; nobody.

    local[N]        Spark makes the secret, and keeps it in memory: there is no other process to tell it to
    Kubernetes      a file of a Secret that the operator makes, mounted by the driver and its executors; see `cluster`
    local-cluster   made here, and told to a JVM that runs already: arguments of programs can be read by everybody

Laws: the secret stands in no argument, in no pod and in no log. What does not prove that it knows it gets no answer: Spark's
RPC would make objects of whatever a stranger sends. What passes between two processes is encrypted, rows included; what lies
in files is not.
"""

import base64
import os
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext

_CRYPTO = "spark.network.crypto."
_TOLD = "spark.authenticate.secret"


def settings() -> dict[str, str]:
    """For every session."""
    return {
        "spark.authenticate": "true",
        _CRYPTO + "enabled": "true",
        _CRYPTO + "authEngineVersion": "2",
        _CRYPTO + "cipher": "AES/GCM/NoPadding",  # the other one does not notice what is changed on its way
        _CRYPTO + "saslFallback": "false",  # that would be a way round encryption
    }


def secret(conf: Mapping[str, str]) -> dict[str, str]:
    """What a session needs beside `conf` to have a secret. Starts the JVM where that is told of it afterwards."""
    if not conf["spark.master"].startswith("local-cluster") or _TOLD in conf:
        return {}
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll([*conf.items()]))
    return {_TOLD: base64.b64encode(os.urandom(32)).decode()}
