"""Two drivers that publish one batch at the same time, which the Lease is there to prevent."""

import os
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinlib import files
from joinlib.errors import StateError
from joinlib.model.tuning import Tuning
from joinlib.sink.config import staging
from joinlib.sink.files import FileSink
from joinlib.sink.publish import check_age, claim, publish
from joinlib.spec.inputs import Format
from tests.patience import HUNG_S

ROUNDS = 150
MARK = "0123456789abcdef"

_PUBLISHER = """
import sys
from pathlib import Path
from joinlib.sink.publish import claim, publish
folder, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for batch in range(rounds):
    print(batch, flush=True)
    sys.stdin.readline()  # both begin a batch together
    try:
        publish(folder, batch, [f"part-{n}-{name}" for n in range(3)], "0123456789abcdef")
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
    publish(tmp_path, 3, stage(tmp_path, 3, "one"), MARK)
    publish(tmp_path, 3, stage(tmp_path, 3, "two"), MARK)
    names = sorted((tmp_path / "batch=3").iterdir())
    assert [f.name for f in names] == [f"part-{n:05d}-{MARK}" for n in range(3)]
    assert {f.read_text() for f in names} == {"one"}
    assert os.listdir(tmp_path / ".staging") == []


def test_another_batch_of_the_number_is_refused(tmp_path: Path) -> None:
    """An old copy of the checkpoint has composed it anew; nothing is lost of what is there. Older versions left no mark."""
    publish(tmp_path, 3, stage(tmp_path, 3, "one"), MARK)
    with pytest.raises(StateError, match=r"batch=3 is another batch .* old copy"):
        publish(tmp_path, 3, stage(tmp_path, 3, "two"), MARK[::-1])
    assert {f.read_text() for f in (tmp_path / "batch=3").iterdir()} == {"one"}
    (tmp_path / "batch=4").mkdir()
    (tmp_path / "batch=4" / "part-00002-17-0123abcd.parquet").touch()
    publish(tmp_path, 4, stage(tmp_path, 4, "two"), MARK)
    assert os.listdir(tmp_path / "batch=4") == ["part-00002-17-0123abcd.parquet"]


def test_a_folder_that_is_ahead_of_its_checkpoint_is_refused(tmp_path: Path) -> None:
    """Numbers are compared as numbers; batches without rows are missing, and others may have been taken away."""
    check_age(tmp_path, None)
    for batch in (2, 9, 10):
        (tmp_path / f"batch={batch}").mkdir()
    (tmp_path / "batch=last").mkdir()
    check_age(tmp_path, 10)
    check_age(tmp_path, 12)
    with pytest.raises(StateError, match=r"holds batch 10 .* at batch 9: .* take batch=10 and all later"):
        check_age(tmp_path, 9)
    with pytest.raises(StateError, match=r"at its beginning: .* take batch=0"):
        check_age(tmp_path, None)


def test_a_batch_without_files(tmp_path: Path) -> None:
    """Leaves no folder."""
    publish(tmp_path, 3, [], MARK)
    assert not (tmp_path / "batch=3").exists()


def test_of_two_processes_one_wins_whole(tmp_path: Path) -> None:
    """Each batch holds the three files of one of them, never some of both; it is there once both are done."""
    for batch in range(ROUNDS):
        stage(tmp_path, batch, "one")
        stage(tmp_path, batch, "two")
    command = [sys.executable, "-c", _PUBLISHER, str(tmp_path)]
    with ExitStack() as ended:
        two = [
            ended.enter_context(
                subprocess.Popen(
                    [*command, name, str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for name in ("one", "two")
        ]
        for process in two:
            ended.callback(process.kill)
        for _ in range(ROUNDS):
            for process in two:
                assert process.stdout is not None
                assert process.stdout.readline()
            for process in two:
                assert process.stdin is not None
                process.stdin.write("\n")
                process.stdin.flush()
        assert [process.wait(HUNG_S) for process in two] == [0, 0]
    winners = set()
    for batch in range(ROUNDS):
        files = sorted((tmp_path / f"batch={batch}").iterdir())
        (winner,) = {file.read_text() for file in files}
        assert [f.name for f in files] == [f"part-{n:05d}-{MARK}" for n in range(3)]
        winners.add(winner)
    assert winners <= {"one", "two"}


def test_a_target_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """Only a batch that is there already is no error."""
    names = stage(tmp_path, 0, "one")
    (tmp_path / "batch=0").symlink_to(tmp_path / "nowhere")
    with pytest.raises(NotADirectoryError):
        publish(tmp_path, 0, names, MARK)


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
    monkeypatch.setattr("joinlib.sink.publish.fault.point", swept_meanwhile)
    for batch in range(8):
        staged = staging(tmp_path, batch)
        staged.mkdir(parents=True)
        for name in names:
            (staged / name).touch()
        with suppress(FileNotFoundError):
            publish(tmp_path, batch, names, MARK)
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
        file = staging(tmp_path / "out", batch) / "part.parquet"
        sink = FileSink(file, "parquet", rows.schema, Tuning(sync=synced))
        sink.write(rows)
        sink.close()
        publish(tmp_path / "out", batch, sink.next_unit()[0], MARK, synced)
    here = tmp_path.name.partition("-")[0]
    assert calls == [
        f"{here} []",  # the new folder's name
        " []",  # whose it is: written behind a dot
        "out []",
        "part []",
        "ready []",
        "out ['batch=0']",
    ]


def test_units_of_a_task_share_a_file(tmp_path: Path) -> None:
    """In rows enough for a frame, whichever units they are of; the first that has rows names it, and no rows make no file."""
    rows = [pa.record_batch({"v": pa.array(values)}) for values in ([1, 2], [3], [4, 5, 6, 7])]
    sink = FileSink(tmp_path / "new" / "part.parquet", "parquet", rows[0].schema, Tuning(frame_rows=3))
    named = []
    for batch in (None, *rows, None):
        if batch is not None:
            sink.write(batch)
        named.append(sink.next_unit())
    sink.close()
    assert named == [((), None), (("part.parquet",), None), ((), None), ((), None), ((), None)]
    written = pq.ParquetFile(tmp_path / "new" / "part.parquet")
    assert written.read().column("v").to_pylist() == [1, 2, 3, 4, 5, 6, 7]
    assert [written.metadata.row_group(g).num_rows for g in range(written.num_row_groups)] == [3, 4]

    none = FileSink(tmp_path / "none" / "part.parquet", "parquet", rows[0].schema, Tuning())
    none.close()
    assert none.next_unit() == ((), None) and not (tmp_path / "none").exists()


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_text_of_several_units(tmp_path: Path, format: Format) -> None:
    """One header, every row once."""
    sink = FileSink(tmp_path / "part", format, pa.schema([("v", pa.int64())]), Tuning(frame_rows=2))
    for value in range(5):
        sink.write(pa.record_batch({"v": pa.array([value])}))
        sink.next_unit()
    sink.close()
    lines = (tmp_path / "part").read_text().splitlines()
    assert lines == (['"v"', *"01234"] if format == "csv" else [f'{{"v":{value}}}' for value in range(5)])
