"""Two drivers that publish one batch at the same time, which the Lease is there to prevent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from joinlib.spark.publish import publish
from joinlib.spark.task import staging

ROUNDS = 150

_PUBLISHER = """
import sys
from pathlib import Path
from joinlib.spark.publish import publish
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
