"""A fork of a job that runs: both go on, one is killed, their results are one; then the first takes over what was tried."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.cli.compare import compared
from jobs.cli.fork import fork
from joinlib.compiled import compiled
from joinlib.direct.report import Report
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob
from joinlib.spec import StreamJoin
from tests.spark.trial import CORES, Rows, Trial, rows_of, until

pytestmark = pytest.mark.spark

OLD = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"
NEW = OLD.replace("p.v AS pv", "p.v AS pv, o.v + p.v AS both")
# Every batch writes files, seals and merges; what a merge has replaced goes two batches later.
TUNING = Tuning(
    file_bytes=0,
    seal_rows=8,
    merge_segments=2,
    max_segments=8,
    max_runs=2,
    retain_batches=2,
    levelled=True,
    fanout=2,
)


def job(trial: Trial, folder: str, sql: str) -> StreamJoin:
    return trial.spec(
        sql, output={"files": {"path": f"{folder}/out"}}, checkpoint={"path": f"{folder}/checkpoint"}
    )


def more(trial: Trial) -> None:
    """Two files of each input."""
    for name in ("orders", "payments"):
        there = len(list((trial.folder / name).iterdir()))
        for file in range(there, there + 2):
            trial.write(name, f"{file:03d}", [(n % 7, n) for n in range(20 * file, 20 * file + 20)])


def output(trial: Trial, *folders: str) -> Rows:
    files = [str(f) for folder in folders for f in (trial.folder / folder / "out").glob("batch=*/*.parquet")]
    read = f"SELECT k, ov, pv FROM read_parquet({files!r}, hive_partitioning=false, union_by_name=true)"
    return rows_of(trial._oracle({}).sql(read).to_arrow_table())


def committed(trial: Trial, folder: str) -> set[int]:
    """The batches of a job. A batch that finds the file of one input before that of the other shifts those behind it."""
    return {int(f.name) for f in (trial.folder / folder / "checkpoint/spark/commits").glob("[0-9]*")}


def killed(document: StreamJoin, file: Path, point: str) -> None:
    """Runs it in a process of its own, which dies at this point by SIGKILL."""
    content: dict[str, Any] = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    head = {"apiVersion": document.api_version, "kind": document.kind}
    file.write_text(yaml.safe_dump(content | head))
    (file.parent / "faults").mkdir(exist_ok=True)
    (file.parent / "faults" / point).touch()
    environment = os.environ | {"STREAMJOIN_FAULTS": str(file.parent / "faults")}
    command = [sys.executable, "-m", "jobs.cli", "run", str(file), "--until-done", "--plain", "--cores", "2"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == -9, ran.stderr[-2000:]
    assert not any((file.parent / "faults").iterdir())


def test_tried_beside_and_then_switched(trial: Trial) -> None:
    """Under load, with kills: nothing is lost or doubled, and the sum of both parts is DuckDB's answer."""
    for name in ("orders", "payments"):
        trial.input(name, "k BIGINT, v BIGINT", orderBy="name", maxFilesPerBatch=1)
    more(trial)
    first, tried = job(trial, "first", OLD), job(trial, "tried", NEW)

    def act(running: RunningJob, reports: list[Report]) -> None:
        until(running, lambda: len(reports) >= 2)
        more(trial)
        assert "shares its segments" in fork(first, tried)
        until(running, lambda: len(reports) >= 4)

    trial.watch(compiled(first, CORES, TUNING), act)
    more(trial)
    trial.run_plan(compiled(first, CORES, TUNING))
    killed(tried, trial.folder / "tried.yaml", f"published:{min(committed(trial, 'tried')) + 2}")
    trial.run_plan(compiled(tried, CORES, TUNING))
    assert output(trial, "first") == trial.expected(OLD)
    found = compared(first, tried)
    assert found.equal, found.text
    assert "of two types: both" in found.text

    # The first job takes over the query that was tried, with its own checkpoint and output.
    more(trial)
    switched = job(trial, "first", NEW)
    killed(switched, trial.folder / "switched.yaml", f"staged:{max(committed(trial, 'first')) + 1}")
    trial.run_plan(compiled(switched, CORES, TUNING))
    assert output(trial, "first") == trial.expected(NEW.replace(", o.v + p.v AS both", ""))
    trial.run_plan(compiled(tried, CORES, TUNING))
    assert compared(switched, tried).equal
