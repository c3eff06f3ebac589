"""Two drivers that publish one batch at the same time, which the Lease is there to prevent."""

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib import files
from joinlib.spark.emit import FileSink
from joinlib.spark.publish import claim, publish
from joinlib.spark.task import staging

ROUNDS = 150

_PUBLISHER = """
import sys
from pathlib import Path
from joinlib.spark.publish import claim, publish
folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for batch in range(rounds):
    print(batch, flush=True)
    sys.stdin.readline()  # both begin a batch together
    try:
        publish(folder, batch, [f"part-{n}-{name}" for n in range(3)])
    except FileNotFoundError:  # the other has published, and cleared what was staged
        pass
"""


def stage(folder: Path, batch: int, name: str) -> list[str]:
    """Three staged files that say whose they are."""
    staged = staging(folder, batch)
    staged.mkdir(parents=True, exist_ok=True)
    names = [f"part-{n}-{name}" for n in range(3)]
    for file in names:
        (staged / file).write_text(name)
    return names


def test_published_once(tmp_path: Path) -> None:
    """A second attempt changes nothing, and what it staged is cleared."""
    publish(tmp_path, 3, stage(tmp_path, 3, "one"))
    publish(tmp_path, 3, stage(tmp_path, 3, "two"))
    assert sorted(os.listdir(tmp_path / "batch=3")) == ["part-0-one", "part-1-one", "part-2-one"]
    assert os.listdir(tmp_path / ".staging") == []


def test_a_batch_without_files(tmp_path: Path) -> None:
    """Leaves no folder."""
    publish(tmp_path, 3, [])
    assert not (tmp_path / "batch=3").exists()


def test_of_two_processes_one_wins_whole(tmp_path: Path) -> None:
    """Each batch holds the three files of one of them, never some of both; it is there once both are done."""
    for batch in range(ROUNDS):
        stage(tmp_path, batch, "one")
        stage(tmp_path, batch, "two")
    command = [sys.executable, "-c", _PUBLISHER, str(tmp_path)]
    two = [
        subprocess.Popen(
            [*command, name, str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    for _ in range(ROUNDS):
        for process in two:
            assert process.stdout is not None
            assert process.stdout.readline()
        for process in two:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
    assert [process.wait(30) for process in two] == [0, 0]
    winners = set()
    for batch in range(ROUNDS):
        files = sorted(os.listdir(tmp_path / f"batch={batch}"))
        (winner,) = {name.rpartition("-")[2] for name in files}
        assert files == [f"part-{n}-{winner}" for n in range(3)]
        winners.add(winner)
    assert winners <= {"one", "two"}


def test_a_target_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """Only a batch that is there already is no error."""
    names = stage(tmp_path, 0, "one")
    (tmp_path / "batch=0").symlink_to(tmp_path / "nowhere")
    with pytest.raises(NotADirectoryError):
        publish(tmp_path, 0, names)


def test_who_publishes_while_the_folder_is_claimed_publishes_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that wakes up when another has taken over: its rename comes while the other sweeps what it has gathered."""
    names = [f"part-{n:05d}" for n in range(100)]
    claimers: list[threading.Thread] = []

    def swept_meanwhile(point: str, batch: int) -> None:
        if point == "staged":
            (ready,) = (tmp_path / ".staging").glob(f"ready-{batch}-*")
            claimers.append(threading.Thread(target=claim, args=(tmp_path, "id")))
            claimers[-1].start()
            while claimers[-1].is_alive() and len(list(ready.glob("*"))) == len(names):
                pass

    claim(tmp_path, "id")
    monkeypatch.setattr("joinlib.spark.publish.fault.point", swept_meanwhile)
    for batch in range(8):
        staged = staging(tmp_path, batch)
        staged.mkdir(parents=True)
        for name in names:
            (staged / name).touch()
        with suppress(FileNotFoundError):
            publish(tmp_path, batch, names)
        claimers[-1].join()
        target = tmp_path / f"batch={batch}"
        assert not target.exists() or len(os.listdir(target)) == len(names)
    claim(tmp_path, "id")
    assert {name.partition("=")[0] for name in os.listdir(tmp_path)} <= {"batch", "_streamjoin.json"}


def test_what_was_swept_halfway_is_swept_by_the_next(tmp_path: Path) -> None:
    """A claim that was cut off leaves a folder that readers do not see."""
    (tmp_path / ".swept-a").mkdir(parents=True)
    (tmp_path / ".swept-a" / "part-0").touch()
    claim(tmp_path, "id")
    assert os.listdir(tmp_path) == ["_streamjoin.json"]


def test_results_are_on_the_disk_before_they_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order that a power cut at any moment asks for: file, its name, the folder's name; without `synced` none of it."""
    calls: list[str] = []

    def said(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        there = sorted(f.name for f in tmp_path.glob("out/batch=*"))
        calls.append(f"{path.name.partition('.')[0].partition('-')[0]} {there}")

    monkeypatch.setattr(files.os, "fsync", said)
    rows = pa.record_batch({"v": pa.array([1])})
    for synced in (True, False):
        claim(tmp_path / "out", "id", synced)
        batch = 0 if synced else 1
        sink = FileSink(staging(tmp_path / "out", batch), "part.parquet", "parquet", rows.schema, synced)
        sink.write(rows)
        publish(tmp_path / "out", batch, sink.close()[0], synced)
    here = tmp_path.name.partition("-")[0]
    assert calls == [
        f"{here} []",  # the new folder's name
        " []",  # whose it is: written behind a dot
        "out []",
        "part []",
        "ready []",
        "out ['batch=0']",
    ]
