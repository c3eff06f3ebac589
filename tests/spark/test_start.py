"""What a session of ours does without, since it would take time: a third of its start, and 5 ms of each batch."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext

from joinlib.direct.report import Report
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob
from tests.laws.document import HEAD
from tests.spark.trial import Trial, until

pytestmark = pytest.mark.spark

SQL = "SELECT x.v, count(*) FROM (SELECT a.k, b.v FROM a JOIN b ON a.k = b.k) x JOIN b ON x.v = b.v GROUP BY x.v"
PROGRAM = """
from joinlib.lean import lean
lean()
import json, sys
from tests.spark.faults.run import Order, main
main(Order(**json.loads(sys.argv[1])))
print("with" if "pandas" in sys.modules else "without", "pandas")"""
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
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, order],
        env={**os.environ, "JDK_JAVA_OPTIONS": f"-Xlog:class+load:file={loaded}"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.splitlines()[-1] == "without pandas"
    names = {line.split("] ")[-1].split()[0] for line in loaded.read_text().splitlines() if "source:" in line}
    assert "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution" in names
    assert {what for name, what in SLOW.items() if name in names} == set()


def test_no_batch_asks_the_jvm_for_names(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each of them it looks through all jars of Spark."""
    client, asked = SparkContext._gateway._gateway_client, list[str]()
    send = client.send_command

    def sent(command: str, *rest: Any, **options: Any) -> Any:
        if command.startswith("r\nu\n"):
            asked.append(command.split("\n")[2])
        return send(command, *rest, **options)

    def watch(job: RunningJob, reports: list[Report]) -> None:
        for batch in range(4):
            for name in "ab":
                trial.write(name, f"{batch}", [(batch, batch)])
            until(job, lambda: sum(report.rows_in for report in reports) == 2 * (batch + 1))  # noqa: B023 - at once
            if batch == 1:
                monkeypatch.setattr(client, "send_command", sent)

    for name in "ab":
        trial.input(name, "k BIGINT, v BIGINT")
    plan = trial.compiled("SELECT a.k, b.v FROM a JOIN b ON a.k = b.k", tuning=Tuning(small_rows=-1))
    trial.watch(plan, watch)
    assert asked == []
