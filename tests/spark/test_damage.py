"""Files and disks that let us down: the job ends with a clear error, nothing is lost, and it goes on once that is mended."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli import restore
from joinlib.checkpoint import batches
from joinlib.engine.task import JoinTask
from joinlib.errors import InputError, NotReady, StateError
from joinlib.model.tuning import Tuning
from tests.spark.trial import Ran, Trial, plain

pytestmark = pytest.mark.spark

SCHEMA = "k BIGINT, v BIGINT"
SQL = "SELECT o.k AS k, o.v AS ov, p.v AS pv FROM orders o JOIN payments p ON o.k = p.k"
WIDE = "k BIGINT, s STRING"
WIDE_SQL = "SELECT o.k AS k, o.s AS os, p.s AS ps FROM orders o JOIN payments p ON o.k = p.k"


def two(trial: Trial, **options: str | int) -> Trial:
    for name in ("orders", "payments"):
        trial.input(name, SCHEMA, orderBy="name", **options)
        trial.fill(name, [(n % 5, n) for n in range(40)], 2)
    return trial


def afresh(trial: Trial) -> None:
    shutil.rmtree(trial.folder / "checkpoint")
    shutil.rmtree(trial.out)


def fails(trial: Trial, kind: type[Exception], sql: str = SQL) -> str:
    with pytest.raises(kind) as error:
        trial.run(sql)
    return plain(error.value)


def test_files_that_do_not_fit_or_are_not_whole(trial: Trial) -> None:
    """File, column and both types; a file cut off fails the job, and running on after it is mended loses nothing."""
    two(trial)
    trial.schemas["orders"] = "k BIGINT, v BIGINT, colour STRING"
    text = fails(trial, InputError, SQL.replace("o.v AS ov", "o.colour AS ov"))
    assert "no column 'colour'" in text
    assert "000.parquet" in text
    afresh(trial)
    trial.schemas["orders"] = "k BIGINT, v DATE"
    text = fails(trial, InputError)
    assert "'v' is int64, declared as date32" in text
    afresh(trial)

    trial.schemas["orders"] = SCHEMA
    whole = trial.write("orders", "zzz", [(1, 100), (2, 101)])
    bytes_ = whole.read_bytes()
    whole.write_bytes(bytes_[: len(bytes_) // 2])
    text = fails(trial, InputError)
    assert "zzz.parquet" in text
    assert "onBadFile: skip" in text
    whole.write_bytes(bytes_)
    trial.run(SQL)
    assert trial.output(SQL) == trial.expected(SQL)


def test_bad_files_are_skipped_and_counted_if_the_spec_says_so(trial: Trial) -> None:
    """The others are joined."""
    two(trial, onBadFile="skip")
    bad = trial.folder / "payments" / "bad.parquet"
    bad.write_bytes(b"PAR1 this is not parquet")
    ran = trial.run(SQL)
    assert ran.lag["payments"]["skipped"] == 1
    assert ran.lag["orders"]["skipped"] == 0
    bad.unlink()
    assert trial.output(SQL) == trial.expected(SQL)


def test_a_damaged_segment_is_named_and_never_joined(trial: Trial) -> None:
    """Cut off, or one bit turned between two runs: the error names the segment; restored, the job goes on."""
    two(trial)
    trial.run(SQL, tuning=Tuning(file_bytes=0))
    before = trial.output(SQL)
    trial.write("orders", "2", [(k, 100 + k) for k in range(5)])
    segment = max((trial.folder / "checkpoint" / "state").rglob("*.arrow"), key=lambda p: p.stat().st_size)
    whole = segment.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:middle], whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]):
        segment.write_bytes(damaged)
        text = fails(trial, StateError)
        assert segment.name in text
        assert "is damaged" in text
        assert "Restore" in text
        assert trial.output(SQL) == before
    segment.write_bytes(whole)
    trial.run(SQL)
    assert trial.output(SQL) == trial.expected(SQL)


@pytest.mark.parametrize("levelled", [False, True])
def test_back_from_a_damaged_batch_to_a_whole_one(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, levelled: bool
) -> None:
    """The run names the damage; back at an earlier batch all is read again: beside indexes that are newer, and with new rows."""
    monkeypatch.setattr(JoinTask, "forget_local", lambda _: None)  # indexes stay
    monkeypatch.setattr(restore, "local_folder", lambda _: trial.folder / "none")
    two(trial, maxFilesPerBatch=1)
    for file in range(2, 6):
        trial.write("orders", f"{file:03d}", [(n % 7, 1000 * file + n) for n in range(20)])
        trial.write("payments", f"{file:03d}", [(n % 11, 1000 * file + n) for n in range(20)])
    sql = SQL.replace("JOIN", "FULL JOIN")
    tuning = Tuning(file_bytes=0, seal_rows=16, levelled=levelled, fanout=2, piece_bytes=300)
    trial.run(sql, tuning=tuning)
    spark = trial.folder / "checkpoint" / "spark"
    newest = batches.done(spark)
    assert newest is not None and newest >= 5
    (spark / "commits" / str(newest)).write_bytes(b"")
    text = fails(trial, StateError, sql)
    assert f"commits/{newest}: cannot be read" in text
    assert "streamjoin restore FILE" in text
    with pytest.raises(StateError, match=f"batch {newest} is not whole"):
        restore.restore(trial.spec(sql), newest)
    restore.restore(trial.spec(sql), newest - 4)
    assert not (trial.out / f"batch={newest}").exists()
    trial.write("orders", "001-new", [(3, 7), (100, 8)])  # batches are made up anew
    trial.run(sql, tuning=tuning)
    assert trial.output(sql) == trial.expected(sql)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not permitted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("place", ["checkpoint", "output"])
def test_a_full_disk_stops_the_job_and_it_resumes(trial: Trial, disk: Path, place: str) -> None:
    """The state or the output finds no room: the error says so, and with room the run ends with DuckDB's answer."""
    draw = random.Random(1)
    for name, count in (("orders", 4), ("payments", 2)):
        trial.input(name, WIDE, orderBy="name", maxFilesPerBatch=1)
        for file in range(count):
            trial.write(
                name, f"{file}", [(file * 900 + n, f"{draw.getrandbits(3200):x}") for n in range(900)]
            )
    where = (
        {"checkpoint": {"path": "disk/checkpoint"}}
        if place == "checkpoint"
        else {"output": {"files": {"path": "disk/out"}}}
    )

    def run() -> Ran:
        return trial.run(WIDE_SQL, **where)

    with pytest.raises(NotReady) as full:
        run()
    assert "the disk is full" in plain(full.value)
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    run()
    if place == "output":
        (disk / "out").rename(disk / "written")
        shutil.copytree(disk / "written", trial.out)
    assert trial.output(WIDE_SQL) == trial.expected(WIDE_SQL)
    assert trial.output(WIDE_SQL).total() == 1800


def test_an_old_copy_of_the_checkpoint_is_refused(trial: Trial) -> None:
    """Beside a newer output: batches composed anew would be taken for those that are there. Without those, the job goes on."""
    two(trial, maxFilesPerBatch=1)
    trial.run(SQL)
    checkpoint, copy = trial.folder / "checkpoint", trial.folder / "copy"
    shutil.copytree(checkpoint, copy)
    for name in ("orders", "payments"):
        trial.write(name, "003", [(n % 5, 100 + n) for n in range(10)])
    trial.run(SQL)
    shutil.rmtree(checkpoint)
    copy.rename(checkpoint)
    for name in ("orders", "payments"):
        trial.write(name, "002", [(n % 5, 200 + n) for n in range(10)])  # now it comes before 003
    told = fails(trial, StateError)
    known = batches.begun(checkpoint / "spark")
    assert known is not None and f"at batch {known}: it is an old copy" in told
    for later in trial.out.glob("batch=*"):
        if int(later.name[6:]) > known:
            shutil.rmtree(later)
    trial.run(SQL)
    assert trial.output(SQL) == trial.expected(SQL)
