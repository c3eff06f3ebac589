"""When Spark is started before a run knows its first batch."""

from pathlib import Path

import pytest

from jobs.cli import ahead
from joinlib.checkpoint import batches
from joinlib.spec import parse

SPEC = """
apiVersion: streamjoin.dev/v1alpha1
kind: StreamJoin
metadata: {name: few}
spec:
  sql: SELECT a.k AS k FROM a JOIN b ON a.k = b.k JOIN t ON t.k = a.k
  inputs:
    a: {schema: k BIGINT, files: {path: a}}
    b: {schema: k BIGINT, files: {path: b}}
    t: {schema: k BIGINT, files: {path: t}, role: table}
  output: {files: {path: out}}
  checkpoint: {path: checkpoint}
"""


def much(folder: Path) -> bool:
    return ahead.much_waits(parse(SPEC, "few.yaml", folder))


def file(path: Path, size: int) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as made:
        made.truncate(size)


def test_where_a_large_file_waits_or_many_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a table, which is no batch; a folder that is not there yet has no files."""
    assert not much(tmp_path)
    file(tmp_path / "t" / "table", ahead._LARGE + 1)
    file(tmp_path / "a" / "0", ahead._LARGE_FILE)
    assert not much(tmp_path)
    file(tmp_path / "b" / "0", ahead._LARGE_FILE + 1)
    assert much(tmp_path)
    monkeypatch.setattr(ahead, "_LARGE_FILE", 2 * ahead._LARGE_FILE)
    assert not much(tmp_path)
    monkeypatch.setattr(ahead, "_LARGE", ahead._LARGE_FILE)
    assert much(tmp_path)


def test_not_where_a_job_goes_on(tmp_path: Path) -> None:
    """Its files may have been read; what has come since is most likely little."""
    file(tmp_path / "a" / "0", ahead._LARGE_FILE + 1)
    spark = tmp_path / "checkpoint" / "spark"
    batches.make(spark, synced=False)
    batches.begin(spark, 0, "{}", synced=False)
    assert not much(tmp_path)
