"""What `status` reads from a checkpoint's files."""

import fcntl
import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.cli.status import status
from joinlib.errors import StateError
from joinlib.spec.load import parse
from joinlib.spec.model import StreamJoin
from joinlib.spec.output import Output
from joinlib.state.manifest import Manifest, Run, Segment, SideManifest
from joinlib.state.manifests import Manifests
from tests.unit.jobs.test_commands import GENERATED

ENVELOPE = {"v": 1, "inputs": {"orders": 4, "payments": 3}, "idle": [], "closed": False}
LAG = {
    "lag": {
        "orders": {"slices": 2, "rows": 2000, "files": 6, "skipped": 1},
        "payments": {"slices": 0, "rows": 0},
    },
    "tables": {"c": 3, "d": 1},
    "loads": {"c": {"version": 3, "seconds": 0.42, "at": 1.0, "kept": 0}},
}


@pytest.fixture
def document(tmp_path: Path) -> StreamJoin:
    (tmp_path / "manifests").mkdir()
    return parse(GENERATED.read_text(), "test.yaml", tmp_path / "manifests")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Batch 7 is committed, batch 8 was begun."""
    folder = tmp_path / "checkpoints" / "console"
    for name in ("spark/offsets", "spark/commits", "state/0/00000", "state/manifests/00000007"):
        (folder / name).mkdir(parents=True)
    (folder / "streamjoin.json").write_text(json.dumps({"id": "1-2-3", "name": "console", "plan": {}}))
    for batch in (7, 8):
        (folder / "spark" / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps({**ENVELOPE, **LAG})}")
    (folder / "spark" / "commits" / "7").write_text("v1\n{}")
    (folder / "state" / "0" / "00000" / "0-1-a.arrow").write_bytes(b"x" * 1500)
    (folder / "state" / "manifests" / "00000007" / "0-0-of-1").write_bytes(b"x" * 700)
    return folder


def test_no_checkpoint(document: StreamJoin, tmp_path: Path) -> None:
    """Nothing has run: said so, and nothing is made."""
    assert status(document).startswith("no run so far")
    assert not (tmp_path / "checkpoints").exists()


def test_all_of_it(document: StreamJoin, checkpoint: Path) -> None:
    """Id, batch, offsets, lag, state: segments, but not what is said of them."""
    text = status(document)
    for part in (
        "console, not running",
        "id 1-2-3",
        "7 is the last that is committed; 8 was begun and runs again",
        "orders: 4 slices, 2,000 rows not read yet, 6 files seen, 1 file skipped",
        "payments: 3 slices, 0 rows not read yet",
        "1 file, 1.5 kB",
        "c: version 3, loaded in 0.42 s",
        "d: version 1",
    ):
        assert part in text


def test_small_state_is_in_manifests(document: StreamJoin, checkpoint: Path) -> None:
    """It is no file, and it is not nothing."""
    (checkpoint / "state" / "manifests" / "00000007" / "0-0-of-1").unlink()
    small, filed = (Segment(name, 3, 90, "", 0, 0, content=c) for name, c in (("a", b"x"), ("b", None)))
    side = SideManifest((Run(0, False, (small, filed)),), marks=(replace(small, rows=1, bytes=10),))
    unit = Manifest(7, (side,)).encode()
    Manifests(checkpoint / "state", 0, 0, 1, epoch=1).write(7, {0: unit, 1: unit})
    assert "state       1 file, 1.5 kB; 8 rows in manifests, 200 B" in status(document)


def test_a_run_that_is_alive(document: StreamJoin, checkpoint: Path) -> None:
    """The lock says so, and whose it is."""
    with (checkpoint / "lock").open("w") as file:
        file.write("4711\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "running (process 4711)" in status(document)
    assert "not running" in status(document)


def test_an_offset_that_cannot_be_read_is_named(document: StreamJoin, checkpoint: Path) -> None:
    """A damaged checkpoint is an error, not a trace."""
    file = checkpoint / "spark" / "offsets" / "8"
    file.write_text("v1\n{}\n")
    with pytest.raises(StateError, match="offsets/8: cannot be read"):
        status(document)


def test_partitions(document: StreamJoin, checkpoint: Path) -> None:
    """Of the latest batch."""
    (checkpoint / "partitions").write_text("4\n")
    assert "4 of the state: tasks that can join at once" in status(document)


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (
            {"mode": "upsert", "key": ["id"], "postgres": {"host": "db", "database": "shop", "user": "u", "table": "s.t"}},
            ["table s.t in shop at db", "upsert by id: rows are taken back when they change"],
        ),
        ({"postgres": {"uriEnv": "SHOP_URI", "table": "t"}}, ["table t in the database of SHOP_URI"]),
        ({"mode": "changelog", "console": {}}, ["changelog: rows are taken back when they change"]),
    ],
)  # fmt: skip
def test_where_results_go(
    document: StreamJoin, checkpoint: Path, output: dict[str, object], lines: list[str]
) -> None:
    """And whether they change."""
    spec = document.spec.model_copy(update={"output": Output.model_validate(output)})
    text = status(document.model_copy(update={"spec": spec}))
    assert [line for line in lines if line not in text] == []
