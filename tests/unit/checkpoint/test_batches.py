"""What Spark's logs of a checkpoint say, read without Spark."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from joinlib.checkpoint import batches
from joinlib.errors import StateError


def log(spark: Path, begun: list[int], done: list[int]) -> None:
    for name, batches_ in (("offsets", begun), ("commits", done)):
        (spark / name).mkdir(parents=True)
        for batch in batches_:
            (spark / name / str(batch)).touch()
            (spark / name / f".{batch}.crc").touch()


def test_nothing_was_begun(tmp_path: Path) -> None:
    """The folder need not be there."""
    spark = tmp_path / "spark"
    assert (batches.begun(spark), batches.done(spark), batches.cut_off(spark)) == (None, None, None)
    assert batches.partitions(spark) is None


def test_all_is_done(tmp_path: Path) -> None:
    """Numbers are compared as numbers."""
    log(tmp_path, [9, 10], [9, 10])
    assert (batches.begun(tmp_path), batches.done(tmp_path), batches.cut_off(tmp_path)) == (10, 10, None)


def test_a_batch_is_cut_off(tmp_path: Path) -> None:
    """The first of all, or a later one."""
    log(tmp_path / "a", [0], [])
    assert batches.cut_off(tmp_path / "a") == 0
    log(tmp_path / "b", [6, 7], [6])
    assert batches.cut_off(tmp_path / "b") == 7


def test_partitions(tmp_path: Path) -> None:
    """Of the latest batch; not known where the file cannot be read."""
    (tmp_path / "partitions").write_text("8\n")
    assert batches.partitions(tmp_path / "spark") == 8
    (tmp_path / "partitions").write_text("")
    assert batches.partitions(tmp_path / "spark") is None


def test_it_is_read_without_spark() -> None:
    """`streamjoin status` answers at once."""
    code = "import sys, joinlib.checkpoint.batches; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_batch_is_told_by_what_steers_it(tmp_path: Path) -> None:
    """Not by when it began, which Spark notes in a line of its own."""
    (tmp_path / "offsets").mkdir()
    marks = []
    for metadata, offset in (("1", '{"read": 1}'), ("2", '{"read": 1}'), ("2", '{"read": 2}')):
        (tmp_path / "offsets" / "7").write_text(f"v1\n{metadata}\n{offset}")
        marks.append(batches.mark(tmp_path, 7))
    assert marks[0] == marks[1] != marks[2] and len(marks[0]) == 16


def test_the_batch_that_was_interrupted(tmp_path: Path) -> None:
    """Begun and not committed, and how long ago."""
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
        (tmp_path / log / "2").touch()
    assert batches.interrupted(tmp_path) is None
    begun = tmp_path / "offsets" / "3"
    begun.touch()
    long_ago = time.time() - 3600
    os.utime(begun, (long_ago, long_ago))
    batch, age_s = batches.interrupted(tmp_path) or (-1, 0.0)
    assert batch == 3 and age_s == pytest.approx(3600, abs=60)


SPARKS = (
    'v1\n{"batchWatermarkMs":0,"batchTimestampMs":7,"conf":{"spark.sql.shuffle.partitions":"200"}}\n{"v": 3}'
)
DONE = 'v1\n{"nextBatchWatermarkMs":0}'


def as_spark(spark: Path, batch: int) -> None:
    """The logs of a batch that Spark has run."""
    for name, content in (("offsets", SPARKS), ("commits", DONE)):
        (spark / name).mkdir(parents=True)
        (spark / name / str(batch)).write_text(content)
        (spark / name / f".{batch}.crc").touch()


def test_a_batch_is_logged_as_by_spark(tmp_path: Path) -> None:
    """With the settings of the one before, its own time and its own envelope; then it is done."""
    as_spark(tmp_path, 0)
    before = time.time()
    batches.begin(tmp_path, 1, '{"v": 3, "inputs": {"a": 1}}', synced=True)
    assert batches.cut_off(tmp_path) == 1
    version, settings, envelope = (tmp_path / "offsets" / "1").read_text().splitlines()
    known = json.loads(settings)
    assert before - 1 <= known.pop("batchTimestampMs") / 1000 <= time.time()
    assert version == "v1"
    assert known == {"batchWatermarkMs": 0, "conf": {"spark.sql.shuffle.partitions": "200"}}
    assert batches.envelope(tmp_path, 1) == envelope == '{"v": 3, "inputs": {"a": 1}}'
    assert batches.offset(tmp_path, 1) == {"v": 3, "inputs": {"a": 1}}
    batches.finish(tmp_path, 1, synced=True)
    assert (tmp_path / "commits" / "1").read_text() == DONE
    assert batches.cut_off(tmp_path) is None
    assert sorted(f.name for f in (tmp_path / "offsets").iterdir()) == [".0.crc", "0", "1"]


def test_as_many_batches_are_kept_as_by_spark(tmp_path: Path) -> None:
    """The current one and those before, with their checksums."""
    as_spark(tmp_path, 0)
    for batch in range(1, batches.KEPT + 4):
        batches.begin(tmp_path, batch, "{}", synced=False)
        batches.finish(tmp_path, batch, synced=False)
    last = batches.KEPT + 3
    for log in ("offsets", "commits"):
        there = {f.name for f in (tmp_path / log).iterdir()}
        assert there == {str(batch) for batch in range(last - batches.KEPT, last + 1)}


def test_a_batch_of_another_run_is_not_replaced(tmp_path: Path) -> None:
    """Neither its beginning nor its end."""
    as_spark(tmp_path, 0)
    batches.begin(tmp_path, 1, "{}", synced=False)
    with pytest.raises(StateError, match=r"offsets/1 is there already"):
        batches.begin(tmp_path, 1, "{}", synced=False)
    batches.finish(tmp_path, 1, synced=False)
    with pytest.raises(StateError, match=r"commits/1 is there already"):
        batches.finish(tmp_path, 1, synced=False)
