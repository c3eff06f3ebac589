"""Jobs for a cluster, the rows they should find (DuckDB), and those that they found.

A job's generators are pure functions of their settings, so the rows are made here again; the output is read through a pod
that mounts the same claim.
"""

import io
import tarfile
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml

from joinlib.compiled import compiled
from joinlib.source import make, reader
from joinlib.spec import parse
from tests.cluster.kube import Kube, Object
from tests.spark.trial import Rows, rows_of

CLAIM = "data"
STREAMS = ("orders", "payments")
SQL = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"


def job(
    name: str, rows: int = 2000, rate: int | None = 100, streams: Sequence[str] = STREAMS, **spec: Any
) -> Object:
    """A job over generators. `rate`: rows a second of each, absent: as fast as it goes."""
    made = {"rows": rows, "keys": max(rows // 2, 1), **({"rowsPerSecond": rate} if rate else {})}
    inputs = {
        n: {"schema": "k BIGINT, v BIGINT", "generator": {**made, "seed": seed}}
        for seed, n in enumerate(streams)
    }
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": name},
        "spec": {
            "sql": SQL,
            "inputs": inputs,
            "output": {"files": {"path": f"/data/out/{name}"}},
            "checkpoint": {"path": f"/data/checkpoints/{name}"},
            "volumes": [{"mountPath": "/data", "claim": CLAIM}],
            "driver": {"memory": "1200Mi"},
            "executors": {"min": 1, "max": 2, "cores": 1, "memory": "1280Mi"},
            "join": {"units": 4},
            "batch": {"interval": "1s"},
            **spec,
        },
    }


def expected(document: Object, **tables: pa.Table) -> Rows:
    """DuckDB's answer over all rows that the job's generators make, and the tables that it looks up."""
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(parse(yaml.safe_dump(document), "job", Path(folder)), 1)
        database = duckdb.connect()
        for source in plan.source.sources:
            logs = Path(folder) / "logs"
            config = replace(source.config, rows_per_second=None)  # row i is the same row at any rate
            made = make(source.name, config, source.schema, logs)
            slices = made.slices(0, made.discover())
            batches = reader(config, source.schema).read_many(slices, source.schema.names)
            database.register(source.name, pa.Table.from_batches(batches))
        for name, table in tables.items():
            database.register(name, table)
        return rows_of(database.sql(document["spec"]["sql"]).to_arrow_table())


@dataclass(frozen=True)
class Store:
    """The claim that the jobs of a namespace share, seen through a pod that only sleeps."""

    kube: Kube
    image: str

    def make(self) -> None:
        self.kube.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": CLAIM},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
            _looker(self.image),
        )
        self.kube.run("wait", "pod/store", "--for=condition=Ready", "--timeout=90s")

    def output(self, name: str) -> Rows:
        """What a reader of the job's output folder sees."""
        data = self.kube.raw(
            "exec", "store", "--", "sh", "-c", f"mkdir -p /data/out/{name}; tar cf - -C /data/out {name}"
        )
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            files = [str(f) for f in Path(folder).glob(f"{name}/batch=*/*.parquet")]
            if not files:
                return Counter()
            query = f"SELECT * FROM read_parquet({files!r}, hive_partitioning=false)"
            return rows_of(duckdb.sql(query).to_arrow_table())

    def put(self, path: str, text: str) -> None:
        """A file, whole at once."""
        write = 'cat > "${0%/*}/.aside" && mv "${0%/*}/.aside" "$0"'
        self.kube.run("exec", "-i", "store", "--", "sh", "-c", write, path, stdin=text)

    def __call__(self, *command: str) -> str:
        return self.kube.exec("store", *command)


def _looker(image: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "store"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsUser": 185,
                "runAsNonRoot": True,
                "fsGroup": 185,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "store",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sleep", "infinity"],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}}],
        },
    }
