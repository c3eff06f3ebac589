"""Spark's JVM is there while batches need it: it starts when one has failed without it, and ends a while after the last."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.faults import processes
from tests.spark.faults.scenario import Run
from tests.spark.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
SQL = "SELECT a.k AS k, a.v AS v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k"
ROWS = 5  # of a file, which is one slice


class Job:
    """A run without an end, in a process of its own, and its folder."""

    def __init__(self, folder: Path, kept_s: int) -> None:
        self.kept_s = kept_s  # for which a JVM is kept that no batch needs
        self.trial = Trial(folder, None)  # type: ignore[arg-type]  # only its files and its oracle are used
        for name in ("a", "b"):
            self.trial.input(name, "k BIGINT, v BIGINT", maxFilesPerBatch=1)
        (folder / "spec.yaml").write_bytes(orjson.dumps(_spec(self.trial)))
        self.rows = 0

    def begin(self, **order: object) -> Run:
        spec = str(self.trial.folder / "spec.yaml")
        told = {"spec": spec, "tuning": {"jvm_kept_s": self.kept_s}, "partitions": None, **order}
        own = {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tests.spark.faults.run", json.dumps(told)]
        return Run(command, {**os.environ, **own}, self.trial.folder / "stderr.txt")

    def pour(self) -> None:
        """A file of each input, which a batch reads."""
        keys = pa.array(range(self.rows, self.rows + ROWS), pa.int64())
        for name in ("b", "a"):
            aside = self.trial.folder / f"{name}.aside"
            pq.write_table(pa.table({"k": keys, "v": keys}), aside)
            aside.rename(self.trial.folder / name / f"{self.rows:05d}.parquet")
        self.rows += ROWS


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Job:
    return Job(tmp_path, getattr(request, "param", 1))


@pytest.fixture
def run(job: Job) -> Iterator[Run]:
    """It begins without Spark."""
    begun = job.begin(direct=True, first=True)
    yield begun
    begun.close()


def test_it_comes_and_goes(job: Job, run: Run) -> None:
    """Twice in one run; batches are numbered throughout, and nothing is lost or doubled."""
    run.until(flowing=True)
    job.pour()
    _until_read(job, run)
    assert not _jvm(run)
    for _ in range(2):
        assert run.kill("server")
        job.pour()
        _until_read(job, run)
        assert _jvm(run)
        _until_no_planner(run)
        _until_it_is_left(job, run)
        _until_there_is_none(run)
    _check(job, run)


@pytest.mark.parametrize("job", [60], indirect=True)
def test_it_dies_while_none_needs_it(job: Job, run: Run) -> None:
    """Batches go on, and another one starts when one is needed."""
    run.until(flowing=True)
    job.pour()
    _until_read(job, run)
    for _ in range(2):
        assert run.kill("server")
        job.pour()
        _until_read(job, run)
        _until_it_is_left(job, run)
        assert run.kill("jvm")
        job.pour()
        _until_read(job, run)
        assert run.lines[-1]["direct"]
    _check(job, run)


def test_one_that_was_killed_and_is_not_gone() -> None:
    """Its connections go first, and on a busy machine the next batch comes before its end."""
    ask = (
        "from types import SimpleNamespace; from pyspark import SparkContext; from joinlib.spark import session;"
        " session.start(1); print(session.alive()); gateway = SparkContext._gateway; gateway.proc.kill();"
        " gateway.proc.wait(); gateway.proc = SimpleNamespace(poll=lambda: None); print(session.alive())"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=True
    )
    assert done.stdout.split() == [b"True", b"False"]


def _check(job: Job, run: Run) -> None:
    assert [line["batch"] for line in run.lines if "batch" in line] == list(range(run.reported + 1))
    assert not run.errors
    run.close()
    done = job.begin(direct=False)  # closes the inputs
    assert done.end() == 0
    assert job.trial.output(SQL) == job.trial.expected(SQL)


def test_a_run_that_has_an_end_may_need_none(job: Job) -> None:
    """Not even to close an outer join."""
    for _ in range(2):
        job.pour()
    run = job.begin(direct=False, first=True)
    watched = []
    while run.alive:
        watched.append(_jvm(run))
        time.sleep(0.05)
    assert run.end() == 0
    assert not any(watched)
    assert job.trial.output(SQL) == job.trial.expected(SQL)


@pytest.mark.parametrize("sound", [False, True])
def test_a_mistake_of_the_user(job: Job, run: Run, sound: bool) -> None:
    """In the first batch it is told without Spark, which would take seconds to say the same; later Spark tries once more."""
    run.until(flowing=True)
    if sound:
        job.pour()
        _until_read(job, run)
    pq.write_table(pa.table({"k": ["x"], "v": [1]}), job.trial.folder / "a" / "99999.parquet")
    watched = []
    while run.alive:
        watched.append(_jvm(run))
        time.sleep(0.05)
    assert run.end() == 1
    assert any(watched) == sound
    told = run.lines[-1]
    assert told["kind"] == "InputError"
    assert "99999.parquet" in told["error"]
    assert "declared as int64" in told["error"]


def _spec(trial: Trial) -> object:
    return {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "trial"},
        "spec": {
            "sql": SQL,
            "inputs": {n: {"schema": s, **trial.options[n]} for n, s in trial.schemas.items()},
            "output": {"files": {"path": "out"}},
            "checkpoint": {"path": "checkpoint"},
            "batch": {"interval": "0s"},
            "join": {"units": 4},
        },
    }


def _jvm(run: Run) -> bool:
    return bool(processes.of_kind(run.session, "jvm"))


def _until_read(job: Job, run: Run, patience_s: float = 120.0) -> None:
    """All rows of both inputs are in batches that were told of."""
    end = time.monotonic() + patience_s
    while _read(run) < 2 * job.rows:
        assert run.alive, run.last_words()
        assert time.monotonic() < end
        run.until_batches(0)


def _read(run: Run) -> int:
    return sum(sum(receipt["rows_in"]) for line in run.lines for receipt in line.get("receipts", ()))


def _until_it_is_left(job: Job, run: Run) -> None:
    """A few batches by Spark, behind which the next one is not."""
    while not run.lines[-1]["direct"]:
        job.pour()
        _until_read(job, run)


def _until_no_planner(run: Run, patience_s: float = 60.0) -> None:
    """What Spark needs until its first batch has ended; the source's driver part goes on."""
    end = time.monotonic() + patience_s
    while "pyspark.sql.worker." in (programs := _programs(run)):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "python_streaming_source_runner" in programs


def _programs(run: Run) -> str:
    return "\n".join(" ".join(p.command) for p in processes.of_session(run.session))


def _until_there_is_none(run: Run, patience_s: float = 60.0) -> None:
    end = time.monotonic() + patience_s
    while _jvm(run):
        assert run.alive, run.last_words()
        assert time.monotonic() < end
        time.sleep(0.1)
