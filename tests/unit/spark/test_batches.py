"""What Spark's logs of a checkpoint say, read without Spark."""

import json
import subprocess
import sys
from pathlib import Path

from joinlib.spark import batches


def log(spark: Path, begun: dict[int, int], done: list[int]) -> None:
    """begun: partitions by batch."""
    for name in ("offsets", "commits"):
        (spark / name).mkdir(parents=True)
    for batch, partitions in begun.items():
        settings = {"conf": {"spark.sql.shuffle.partitions": str(partitions)}}
        (spark / "offsets" / str(batch)).write_text(f"v1\n{json.dumps(settings)}\n{{}}")
        (spark / "offsets" / f".{batch}.crc").touch()
    for batch in done:
        (spark / "commits" / str(batch)).touch()


def test_nothing_was_begun(tmp_path: Path) -> None:
    """The folder need not be there."""
    assert (batches.begun(tmp_path), batches.done(tmp_path), batches.cut_off(tmp_path)) == (None, None, None)
    assert (batches.partitions(tmp_path), batches.half_repartitioned(tmp_path)) == (None, None)


def test_all_is_done(tmp_path: Path) -> None:
    """Numbers are compared as numbers."""
    log(tmp_path, {9: 4, 10: 4}, [9, 10])
    assert (batches.begun(tmp_path), batches.done(tmp_path), batches.cut_off(tmp_path)) == (10, 10, None)
    assert (batches.partitions(tmp_path), batches.half_repartitioned(tmp_path)) == (4, None)


def test_a_batch_is_cut_off(tmp_path: Path) -> None:
    """The first of all, or a later one: it is no repartition."""
    log(tmp_path / "a", {0: 4}, [])
    assert (batches.cut_off(tmp_path / "a"), batches.half_repartitioned(tmp_path / "a")) == (0, None)
    log(tmp_path / "b", {6: 4, 7: 4}, [6])
    assert (batches.cut_off(tmp_path / "b"), batches.half_repartitioned(tmp_path / "b")) == (7, None)


def test_a_repartition_is_cut_off(tmp_path: Path) -> None:
    """It differs from the batch before by its partitions, and is over once it is done."""
    log(tmp_path / "a", {6: 4, 7: 8}, [6])
    assert (batches.half_repartitioned(tmp_path / "a"), batches.partitions(tmp_path / "a")) == (8, 8)
    log(tmp_path / "b", {6: 4, 7: 8}, [6, 7])
    assert (batches.half_repartitioned(tmp_path / "b"), batches.partitions(tmp_path / "b")) == (None, 8)


def test_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    """Not known: Spark will say what is wrong with it."""
    log(tmp_path, {6: 4, 7: 8}, [6])
    (tmp_path / "offsets" / "7").write_text("v1\n{")
    assert batches.partitions(tmp_path) is None


def test_it_is_read_without_spark() -> None:
    """`streamjoin status` answers at once."""
    code = "import sys, joinlib.spark.batches; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
