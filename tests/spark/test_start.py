"""What a session of ours does without, since it would take a third of its start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.laws.document import HEAD

pytestmark = pytest.mark.spark

SQL = "SELECT x.v, count(*) FROM (SELECT a.k, b.v FROM a JOIN b ON a.k = b.k) x JOIN b ON x.v = b.v GROUP BY x.v"
SLOW = {
    "org.apache.spark.sql.ml.InternalFunctionRegistration": "MLlib's functions, made by Scala's reflection",
    "scala.reflect.runtime.JavaUniverse": "Scala's reflection",
    "org.apache.spark.sql.catalyst.parser.SqlBaseParser": "the parser of SQL, also of schemas that are texts",
    "org.apache.spark.ErrorClassesJsonReader": "the texts of all errors, for one that nobody sees",
}


def test_the_first_batch_waits_for_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"k": [1, 2], "v": [3, 4]}), tmp_path / name / "0.parquet")
    spec = {
        "sql": SQL,
        "inputs": {name: {"schema": "k BIGINT, v BIGINT", "files": {"path": name}} for name in "ab"},
        "output": {"mode": "changelog", "files": {"path": "out"}},
        "checkpoint": {"path": "checkpoint"},
    }
    (tmp_path / "spec.yaml").write_bytes(orjson.dumps({**HEAD, "spec": spec}))
    order = json.dumps({"spec": str(tmp_path / "spec.yaml"), "tuning": {}})
    loaded = tmp_path / "loaded"
    subprocess.run(
        [sys.executable, "-m", "tests.spark.faults.run", order],
        env={**os.environ, "JDK_JAVA_OPTIONS": f"-Xlog:class+load:file={loaded}"},
        check=True,
        capture_output=True,
    )
    names = {line.split("] ")[-1].split()[0] for line in loaded.read_text().splitlines() if "source:" in line}
    assert "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution" in names
    assert {what for name, what in SLOW.items() if name in names} == set()
