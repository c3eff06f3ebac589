"""Signals, errors and the summary of a run, without Spark."""

import errno
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.cli.run import _signals, _user_error, check_folders
from jobs.cli.summary import near, summary
from jobs.figures import Took
from jobs.flow import Flow
from joinlib.compiled import compiled
from joinlib.errors import SpecError, StreamJoinError, Unforeseen, exit_code
from joinlib.spec import load, telling_of
from joinlib.spec.output import Output, OutputFiles
from tests.unit.jobs.test_commands import MANIFESTS
from tests.unit.jobs.test_figures import after
from tests.unit.jobs.test_screen import LAG, SCENE

DOCUMENT = load(next(m for m in MANIFESTS if m.name.startswith("02")))


MISSING = """\
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: missing}
spec:
  sql: SELECT a.id FROM a
  inputs:
    a:
      files: {path: gone, format: csv}
      schema: id BIGINT
    b: {schema: id BIGINT, files: {path: gone-too}}
  output: {noop: {}}
  checkpoint: {path: checkpoint}
"""


@pytest.fixture
def flow() -> Flow:
    return Flow(compiled(DOCUMENT, 1), until_done=False, conf={})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_the_second_ends(flow: Flow, number: signal.Signals) -> None:
    """Once rows can flow, a signal lets the run stop in order; who asks again does not wait. Two at once are one."""
    flow.flowing.set()
    moments = iter([10.0, 10.1, 12.0])
    with _signals(flow, lambda: next(moments)) as asked:
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert asked == [10.0]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_a_signal_before_anything_flows_ends_at_once(flow: Flow) -> None:
    """There is nothing to bring to an end; handlers are as before afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    with _signals(flow), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_error_for_users_is_left_as_it_is() -> None:
    """It says all that is needed."""
    error = SpecError("orders.yaml:3: no")
    assert _user_error(error, Path("spark.log")) is error


@pytest.mark.parametrize(
    ("error", "begins"),
    [
        (
            StreamJoinError("Spark ended the query: bad\n  at x\n" + "  at y\n" * 500),
            "the run failed: Spark ended",
        ),
        (ConnectionRefusedError(111, "refused"), "the run failed: Spark's Java process has died"),
        (RuntimeError("no port"), "the run failed: RuntimeError: no port"),
        (
            Unforeseen("a task failed in batch 3: KeyError: 'x'"),
            "the run failed: a task failed in batch 3: KeyError",
        ),
    ],
)
def test_an_unexpected_error_is_a_paragraph_and_a_place(error: Exception, begins: str) -> None:
    """Pages of stack trace stay in the log, whose name is given."""
    text = str(_user_error(error, Path("logs/spark.log")))
    assert text.startswith(begins)
    assert "logs/spark.log" in text
    assert len(text) < 600
    assert ("run again" in text) == (exit_code(_user_error(error, Path("x"))) == 1), (
        "not where it would be the same"
    )


@pytest.mark.parametrize(
    ("file", "number", "said"),
    [
        ("checkpoint/lock", errno.EACCES, "spec.checkpoint.path: {}/checkpoint cannot be written: Permission denied"),
        ("", errno.EACCES, "spec.checkpoint.path: {}/checkpoint cannot be written: Permission denied"),
        ("out/x", errno.EROFS, "spec.output.files.path: {}/out cannot be written: Read-only file system"),
        ("data/1.csv", errno.EACCES, "{}/data/1.csv: Permission denied"),
    ],
)  # fmt: skip
def test_a_folder_that_may_not_be_written_is_told_by_its_field(
    file: str, number: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no defect, and people know what to do; so it is of a parent of the folder."""
    monkeypatch.chdir("/")
    spec = DOCUMENT.spec.model_copy(
        update={
            "checkpoint": DOCUMENT.spec.checkpoint.model_copy(update={"path": tmp_path / "checkpoint"}),
            "output": Output(files=OutputFiles(path=tmp_path / "out")),
        }
    )
    document = DOCUMENT.model_copy(update={"spec": spec})
    error = _user_error(OSError(number, os.strerror(number), str(tmp_path / file)), Path("x"), document)
    assert str(error).partition(";")[0] == said.format(near(tmp_path))
    assert exit_code(error) == 2


def test_a_folder_that_is_not_there_is_told_at_its_field(tmp_path: Path) -> None:
    """Of those that are read; an input that no query reads may have none."""
    (file := tmp_path / "job.yaml").write_text(MISSING)
    document = load(file)
    said = r"job\.yaml:8: spec\.inputs\.a\.files\.path: .*gone: there is no such folder; create it"
    with pytest.raises(SpecError, match=said), telling_of(file):
        check_folders(document, ["a"])
    (tmp_path / "gone").mkdir()
    check_folders(document, ["a"])


def test_the_summary() -> None:
    """What came in, what came out and where it is; how it ended."""
    text = summary(replace(SCENE, figures=after(1.0, 4.0), lag=LAG, took=Took(1, 0.5)), DOCUMENT)
    first, flights, weather, out, state = text.splitlines()
    assert first == "done: 2 batches in 4.00 s, 30 rows/s"
    assert flights.endswith("40 rows in that pass its filter, 4 late and left out")
    assert weather.endswith("80 rows in, 1 files skipped")
    assert out.endswith("demo/out/flights-weather")
    assert state.endswith("60 rows, 660 B")
    assert summary(replace(SCENE, figures=after(1.0), stopping=True), DOCUMENT).startswith(
        "stopped; run again to go on"
    )


def test_the_summary_of_a_run_that_found_nothing() -> None:
    """A second run over inputs without new rows says so."""
    assert summary(SCENE, DOCUMENT) == "done: no new rows"
