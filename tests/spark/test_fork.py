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
from jobs.cli.switch import switch
from joinlib.compiled import compiled
from joinlib.direct.report import Report
from joinlib.model.tuning import Tuning
from joinlib.spark.job import RunningJob
from joinlib.spec import StreamJoin, load
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


def written(trial: Trial, document: StreamJoin, folder: str) -> Path:
    """Its file."""
    content: dict[str, Any] = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    head = {"apiVersion": document.api_version, "kind": document.kind}
    file = trial.folder / f"{folder}.yaml"
    file.write_text(yaml.safe_dump(content | head))
    return file


def killed(point: str, file: Path, *command: str) -> None:
    """Gives a command for it in a process of its own, which dies at this point by SIGKILL."""
    (file.parent / "faults").mkdir(exist_ok=True)
    (file.parent / "faults" / point).touch()
    environment = os.environ | {"STREAMJOIN_FAULTS": str(file.parent / "faults")}
    name, *options = command
    given = [sys.executable, "-m", "jobs.cli", name, str(file), *options]
    ran = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == -9, ran.stderr[-2000:]
    assert not any((file.parent / "faults").iterdir())


RUN = "run", "--until-done", "--plain", "--cores", "2"


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
    new = written(trial, tried, "tried")
    killed(f"published:{min(committed(trial, 'tried')) + 2}", new, *RUN)
    trial.run_plan(compiled(tried, CORES, TUNING))
    assert output(trial, "first") == trial.expected(OLD)
    found = compared(first, tried)
    assert found.equal, found.text
    assert "of two types: both" in found.text

    # The first job takes over the query that was tried, with its own checkpoint and output.
    more(trial)
    file = written(trial, first, "first")
    last = max(committed(trial, "first"))
    for point in ("switching", "switched"):
        killed(f"{point}:{last}", file, "switch", "--to", str(new))
    assert "already" in switch(file, new)
    switched = load(file)
    assert switched.spec == job(trial, "first", NEW).spec
    killed(f"staged:{last + 1}", file, *RUN)
    trial.run_plan(compiled(switched, CORES, TUNING))
    assert output(trial, "first") == trial.expected(NEW.replace(", o.v + p.v AS both", ""))
    trial.run_plan(compiled(tried, CORES, TUNING))
    assert compared(switched, tried).equal
