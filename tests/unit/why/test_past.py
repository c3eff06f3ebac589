"""Rows of batches that the logs have long forgotten: what is said of them is as certain as of the last ones."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli.fork import fork
from joinlib.checkpoint import batches, timeline, units
from joinlib.checkpoint.history import History
from joinlib.checkpoint.planned import in_units
from joinlib.compiled import compiled
from joinlib.model.tuning import Tuning
from joinlib.spec.model import StreamJoin
from joinlib.state.manifests import kept_batches
from joinlib.why import answer
from joinlib.why.verdict import Fate, Late
from tests.laws.product import own_folder
from tests.unit.why.lived import Files, document, lived
from tests.unit.why.test_whynot import SOON, order, payment

COUNT = 53  # batches: each is a minute, whose watermark is 10 s before its rows
LATE = 4000  # and more: a row that comes two minutes after its time


def minutes() -> Files:
    def clock(minute: int) -> str:
        return f"12:{minute:02}:00"

    def late(n: int) -> list[str]:
        return [order(LATE + n, clock(n - 2))] if n > 1 else []

    return {
        "orders": [[order(n, clock(n)), *late(n)] for n in range(COUNT)],
        "payments": [[payment(n, clock(n))] for n in range(COUNT)],
    }


@pytest.fixture(scope="module")
def past() -> Iterator[tuple[StreamJoin, Path]]:
    """A job of many batches."""
    with own_folder() as folder:
        job = document(folder, SOON, minutes())
        for file in [*folder.glob("orders/*.csv"), *folder.glob("payments/*.csv")]:
            file.rename(file.with_name(f"{int(file.stem):03}.csv"))
        lived(job, folder)
        yield job, folder


@pytest.fixture
def checkpoint(past: tuple[StreamJoin, Path], tmp_path: Path) -> Iterator[Path]:
    """Its checkpoint, which is put back afterwards."""
    shutil.copytree(there := past[1] / "ck", tmp_path / "ck")
    yield there
    shutil.rmtree(there)
    shutil.move(tmp_path / "ck", there)


def fates(job: StreamJoin) -> dict[int, Fate]:
    """What became of the late rows, by their batches."""
    orders, *_ = answer.whynot(job, f"order_id >= {LATE} AND amount = 50")
    return {int(Path(fate.row.file).stem): fate for fate in orders.fates}


def sure(found: dict[int, Fate]) -> set[int]:
    """The batches of which all is known, and right."""
    for n, fate in found.items():
        assert fate.row.batch is None or (fate.row.batch == n or not fate.row.exact), fate
        (late,) = (verdict for verdict in fate.verdicts if isinstance(verdict, Late))
        assert not late.sure or late.by_us == 50_000_000, fate
    return {n for n, fate in found.items() if fate.row.exact and fate.verdicts[0].sure}  # type: ignore[union-attr]


def test_all_is_sure(past: tuple[StreamJoin, Path]) -> None:
    """Of each late row: by how much, and which batch has read it. The logs know the last batches alone."""
    job, folder = past
    assert len(batches.all_begun(folder / "ck" / "spark")) == batches.KEPT + 1
    assert sure(found := fates(job)) == set(range(2, COUNT))
    assert all(fate.row.batch == n for n, fate in found.items())


def test_what_a_row_of_the_result_was_made_of(past: tuple[StreamJoin, Path]) -> None:
    """The batch of each row."""
    rows, _ = answer.why(past[0], "order_id = 5")
    assert [(row.batch, row.exact) for row in rows[0].rows] == [(5, True), (5, True)]


def test_a_damaged_timeline(past: tuple[StreamJoin, Path], checkpoint: Path) -> None:
    """The last batches are known as without one; nothing that is said is wrong, and nothing fails."""
    (file,) = timeline.files(checkpoint)
    raw = file.read_bytes()
    for damaged in (raw[:100] + b"7" + raw[101:], b"", b"\0" * len(raw)):
        file.write_bytes(damaged)
        known = sure(fates(past[0]))
        assert {*range(COUNT - batches.KEPT, COUNT)} <= known < {*range(2, COUNT)}


def test_a_timeline_that_is_cut_off(past: tuple[StreamJoin, Path], checkpoint: Path) -> None:
    """The machine has lost its end: what was before is known, and what is behind the gap."""
    (file,) = timeline.files(checkpoint)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:40])
    assert sure(fates(past[0])) == {*range(2, 24), *range(COUNT - batches.KEPT, COUNT)}


def test_going_back(past: tuple[StreamJoin, Path], checkpoint: Path) -> None:
    """What came behind the batch is not known any more: its rows are not read yet."""
    History(checkpoint, 1).forget(COUNT - 7, [])
    found = fates(past[0])
    read = {n: fate for n, fate in found.items() if fate.row.read}
    assert sure(read) == set(range(2, COUNT - 6))
    assert timeline.known(checkpoint, COUNT).read("orders")[0].max() == COUNT - 7


def test_other_units(past: tuple[StreamJoin, Path], checkpoint: Path) -> None:
    """The division drops the manifests of the batches before it, and keeps what they said."""
    job = in_units(past[0], 4)
    units.follow(checkpoint, compiled(job, 1).pipeline, Tuning())
    assert len(kept_batches(checkpoint / "state")) == 1
    assert sure(fates(job)) == set(range(2, COUNT))


def test_a_fork(past: tuple[StreamJoin, Path], checkpoint: Path) -> None:
    """It knows the past of the first job, also of batches whose logs it does not have."""
    job, folder = past
    spec = job.spec.model_copy(
        update={
            "checkpoint": job.spec.checkpoint.model_copy(update={"path": folder / "fork"}),
            "output": job.spec.output.model_copy(
                update={"files": job.spec.output.files.model_copy(update={"path": folder / "fork-out"})}  # type: ignore[union-attr]
            ),
        }
    )
    other = job.model_copy(update={"spec": spec})
    try:
        fork(job, other)
        assert len(batches.all_begun(folder / "fork" / "spark")) == 2
        assert sure(fates(other)) == set(range(2, COUNT))
        timeline.cut(folder / "fork", 20)
        assert sure(fates(job)) == set(range(2, COUNT)), "each has its own"
    finally:
        shutil.rmtree(folder / "fork", ignore_errors=True)
