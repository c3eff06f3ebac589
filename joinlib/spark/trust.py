"""Authentication and encryption between Spark's processes: a peer must know the session's secret.

    local[N]        Spark makes the secret and keeps it in memory: no other process needs it
    Kubernetes      the operator makes a Secret, which driver and executors mount as a file
    local-cluster   made here and passed to a JVM that runs already: anybody can read a program's arguments

Laws: the secret appears in no argument, in no pod spec and in no log. A peer that does not prove that it
knows the secret gets no answer, because Spark's RPC deserializes whatever a stranger sends. All traffic
between processes is encrypted, rows included; files are not.
"""

import base64
import os
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext

_CRYPTO = "spark.network.crypto."
_SECRET_SETTING = "spark.authenticate.secret"  # noqa: S105 - the name of a setting


def settings() -> dict[str, str]:
    """Return the settings of every session."""
    return {
        "spark.authenticate": "true",
        _CRYPTO + "enabled": "true",
        _CRYPTO + "authEngineVersion": "2",
        _CRYPTO + "cipher": "AES/GCM/NoPadding",  # the alternative does not detect tampering
        _CRYPTO + "saslFallback": "false",  # the fallback would bypass encryption
    }


def secret(conf: Mapping[str, str]) -> dict[str, str]:
    """Return what a session needs beside `conf` to have a secret.

    For local-cluster this starts the JVM, which gets the secret afterwards.
    """
    if not conf["spark.master"].startswith("local-cluster") or _SECRET_SETTING in conf:
        return {}
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll([*conf.items()]))
    return {_SECRET_SETTING: base64.b64encode(os.urandom(32)).decode()}
