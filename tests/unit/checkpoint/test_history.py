"""Whole batches, damaged ones, and the way back. Law: what came behind a batch is gone, and what it names is there."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.cli.restore import restore
from joinlib.checkpoint import batches
from joinlib.checkpoint.history import History
from joinlib.checkpoint.identity import identify
from joinlib.checkpoint.planned import plan_of
from joinlib.errors import NotReady, SpecError, StateError
from joinlib.sink.publish import claim
from joinlib.spec import StreamJoin, parse
from joinlib.state import segment
from joinlib.state.manifest import Manifest, Run, Segment, SideManifest
from joinlib.state.manifests import Manifests

BATCHES = range(3, 7)  # 7 was begun


SQL = "SELECT a.k FROM a JOIN b ON a.k = b.k"


def spec(folder: Path, output: dict[str, Any] | None = None, sql: str = SQL) -> StreamJoin:
    source = {"schema": "k BIGINT", "generator": {"rows": 10}}
    content = {
        "apiVersion": "streamjoin.dev/v1alpha1",
        "kind": "StreamJoin",
        "metadata": {"name": "back"},
        "spec": {
            "sql": sql,
            "inputs": {"a": source, "b": source},
            "output": output or {"files": {"path": "out"}},
            "checkpoint": {"path": "checkpoint"},
        },
    }
    return parse(json.dumps(content), "back.yaml", folder)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Batch n has the segments up to n; results of all but batch 5, and of the one that was cut off."""
    checkpoint = tmp_path / "checkpoint"
    spark, unit = checkpoint / "spark", checkpoint / "state" / "0" / "00001"
    unit.mkdir(parents=True)
    identity = identify(checkpoint, "back", plan_of(spec(tmp_path)))
    claim(tmp_path / "out", identity)
    batches.make(spark, synced=False)
    run = Run(0, False, ())
    for batch in [*BATCHES, 7]:
        (spark / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"inputs": {{"a": {batch}}}}}')
        if batch != 5:
            (tmp_path / "out" / f"batch={batch}").mkdir(parents=True)
            (tmp_path / "out" / f"batch={batch}" / "part-0.parquet").touch()
        if batch == 7:
            break
        (spark / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        rows = pa.record_batch([pa.array([batch])], ["k"])
        w = segment.write(unit, f"0-{batch:08d}", rows)
        run = Run(0, False, (*run.segments, Segment(w.name, 1, w.bytes, w.digest, batch, 0)))
        manifest = Manifest(batch, (SideManifest((run,)),))
        for partition in range(2):
            own = {1: manifest.encode()} if partition == 1 else {}
            Manifests(checkpoint / "state", 0, partition, 2, epoch=1).write(batch, own)
    return History(checkpoint, 1)


def test_a_whole_checkpoint(history: History, tmp_path: Path) -> None:
    """Nothing is said; those that are kept are listed, newest first, and nothing changes."""
    history.check()
    said = restore(spec(tmp_path), None)
    assert [line.split() for line in said.splitlines()[:-1]] == [
        ["batch", str(n), "whole"] for n in reversed(BATCHES)
    ]
    assert "--to-batch 6" in said
    assert batches.begun(history.spark) == 7


@pytest.mark.parametrize(
    ("what", "batch"),
    [
        ("spark/offsets/7", 7),
        ("spark/offsets/6", 6),
        ("spark/commits/6", 6),
        ("state/manifests/00000006/0-1-of-2-by-1", 6),
    ],
)
@pytest.mark.parametrize("cut", [0, 5])
def test_a_damaged_newest_batch_is_named_and_the_one_before_is_whole(
    history: History, tmp_path: Path, what: str, batch: int, cut: int
) -> None:
    """What a power cut leaves: an empty file, or half of one. The error says which, and the way back."""
    file = history.checkpoint / what
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(StateError) as error:
        history.check()
    assert str(file) in str(error.value)
    assert "streamjoin restore FILE" in str(error.value)
    newest = 6 if batch == 7 else 5
    assert f"--to-batch {newest}`" in restore(spec(tmp_path), None)
    restore(spec(tmp_path), newest)
    history.check()
    assert (batches.begun(history.spark), batches.done(history.spark)) == (newest, newest)


def test_a_bit_that_flipped_in_a_log(history: History) -> None:
    """As Hadoop's checksum has it, of a file that can be read all the same; without a checksum nothing is known."""
    file = history.spark / "offsets" / "7"
    checksum = file.with_name(".7.crc")
    whole = file.read_bytes()
    code = batches._CHECKED + zlib.crc32(whole).to_bytes(4, "big")
    checksum.write_bytes(code)
    history.check()
    file.write_bytes(whole.replace(b'"a": 7', b'"a": 9'))
    with pytest.raises(StateError, match="offsets/7: cannot be read, it is damaged"):
        history.check()
    checksum.write_bytes(b"")
    history.check()


def test_a_damaged_segment_damages_all_batches_that_name_it(history: History, tmp_path: Path) -> None:
    """Those before it are whole."""
    (file,) = (history.states / "0" / "00001").glob("0-00000005-*")
    file.write_bytes(b"")
    lines = restore(spec(tmp_path), None).splitlines()
    assert [("whole" in line, file.name in line) for line in lines[:4]] == [
        (False, True),
        (False, True),
        (True, False),
        (True, False),
    ]
    with pytest.raises(StateError, match=r"batch 6 is not whole: .*is damaged"):
        restore(spec(tmp_path), 6)
    assert (tmp_path / "out" / "batch=7").exists()


def test_going_back(history: History, tmp_path: Path) -> None:
    """Logs, manifests and results behind it are gone, segments stay; what was before is untouched."""
    said = restore(spec(tmp_path), 4)
    assert "results of 2 batches were withdrawn" in said
    assert sorted(f.name for f in (tmp_path / "out").glob("batch=*")) == ["batch=3", "batch=4"]
    assert (batches.begun(history.spark), batches.done(history.spark)) == (4, 4)
    assert sorted(f.name for f in (history.states / "manifests").iterdir()) == ["00000003", "00000004"]
    assert len(list((history.states / "0" / "00001").iterdir())) == 4
    history.check()
    with pytest.raises(SpecError, match="batch 6 is not kept, or not done; there are 4, 3"):
        restore(spec(tmp_path), 6)


def test_a_folder_of_several_batches_is_not_torn(history: History, tmp_path: Path) -> None:
    """Where small batches are put together one can go back only to where a folder ends; what waits goes as well."""
    document = spec(tmp_path, {"files": {"path": "out", "compact": {}}})
    (tmp_path / "out" / ".waiting").mkdir()
    (tmp_path / "out" / "batch=7").rename(tmp_path / "out" / ".waiting" / "batch=7")
    with pytest.raises(SpecError, match=r"go back to a batch that ends a folder of .*out: 3, 4, 6"):
        restore(document, 5)
    restore(document, 6)
    assert not list((tmp_path / "out" / ".waiting").iterdir())
    restore(document, 4)
    assert not (tmp_path / "out" / "batch=6").exists()


def test_going_back_is_cut_off(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs in between, and it can only be finished, or go back further."""

    def dies(spark: Path, after: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batches, "forget", dies)
        with pytest.raises(KeyboardInterrupt):
            restore(spec(tmp_path), 4)
    with pytest.raises(StateError, match="on its way back to batch 4"):
        history.check()
    with pytest.raises(SpecError, match="there are 4, 3"):
        restore(spec(tmp_path), 5)
    restore(spec(tmp_path), 4)
    history.check()
    assert batches.begun(history.spark) == 4


def test_results_in_a_topic_cannot_be_withdrawn(history: History, tmp_path: Path) -> None:
    """Refused with the reason, and nothing has changed."""
    kafka = spec(
        tmp_path, {"kafka": {"bootstrapServers": "nowhere:9092", "topic": "results", "format": "json"}}
    )
    with pytest.raises(
        SpecError, match="the results are in topic results, from where they cannot be withdrawn"
    ):
        restore(kafka, 4)
    assert "cannot be withdrawn" in restore(kafka, None)
    table = {"postgres": {"host": "nowhere", "database": "d", "user": "u", "table": "results"}}
    with pytest.raises(SpecError, match=r"the results are in table results, from where .* and a new table"):
        restore(spec(tmp_path, table), 4)
    assert batches.begun(history.spark) == 7


def test_a_checkpoint_of_another_query_is_left_alone(history: History, tmp_path: Path) -> None:
    """Neither listed nor taken back: a spec that names its folder by mistake would drop another job's results."""
    other = spec(tmp_path, sql="SELECT a.k FROM a LEFT JOIN b ON a.k = b.k")
    for batch in (None, 4):
        with pytest.raises(SpecError, match="is of another query; ask with the spec that it runs with"):
            restore(other, batch)
    assert (batches.begun(history.spark), len(list((tmp_path / "out").glob("batch=*")))) == (7, 4)


@pytest.mark.parametrize(
    ("owner", "why"), [("", "is missing"), ("none", "belongs to no"), ("other", "belongs to another")]
)
def test_results_that_lie_elsewhere_are_not_left_behind(
    history: History, tmp_path: Path, owner: str, why: str
) -> None:
    """Where the spec names another folder than the run did, nothing changes: their rows would come out again."""
    if owner:
        (tmp_path / "elsewhere").mkdir()
    if owner == "other":
        claim(tmp_path / "elsewhere", "of another checkpoint")
    with pytest.raises(SpecError, match=rf"spec.output.files.path: .*elsewhere {why}.*; name the folder"):
        restore(spec(tmp_path, {"files": {"path": "elsewhere"}}), 4)
    assert (batches.begun(history.spark), len(list((tmp_path / "out").glob("batch=*")))) == (7, 4)


def test_the_list_writes_nothing(history: History, tmp_path: Path) -> None:
    """One who may only read the checkpoint can ask for it; while a run is alive it is not given."""
    (history.checkpoint / "lock").touch()
    before = {file: file.stat().st_mtime_ns for file in history.checkpoint.rglob("*")}
    restore(spec(tmp_path), None)
    assert {file: file.stat().st_mtime_ns for file in history.checkpoint.rglob("*")} == before
    with (history.checkpoint / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(NotReady, match="in use by another run"):
            restore(spec(tmp_path), None)


def test_going_back_where_this_user_may_not_write(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is named by its field, with what to do."""

    def refuses(file: Path, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(os, "open", refuses)
    with pytest.raises(SpecError) as error:
        restore(spec(tmp_path), 4)
    assert str(error.value).startswith("spec.checkpoint.path: ")
    assert "checkpoint cannot be written: Permission denied; give this user the right" in str(error.value)


def test_not_while_a_run_is_alive(history: History, tmp_path: Path) -> None:
    """Neither its Python nor a JVM that it left behind."""
    with (history.checkpoint / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(NotReady, match="in use by another run"):
            restore(spec(tmp_path), 4)
    jvm = f"import fcntl, time; f = open({str(history.checkpoint / 'lock.jvm')!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"
    command = [sys.executable, "-c", f"{jvm}; print(flush=True); time.sleep(60)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            for batch in (None, 4):
                with pytest.raises(NotReady, match="Spark process of an earlier run is still alive"):
                    restore(spec(tmp_path), batch)
        finally:
            holder.kill()
    assert batches.begun(history.spark) == 7
