"""The model of a disk that `tests/spark/faults/test_order.py` replays a run on."""

from pathlib import PurePosixPath

from tests.spark.faults.durable import Disk, Event

ROOT = PurePosixPath("/job")


def _sync(thread: int, *, begins: bool) -> Event:
    return Event("sync", (ROOT,), thread, begins)


def test_a_sync_that_began_earlier_takes_nothing_back() -> None:
    """Two tasks sync one folder at once: whichever ends last, both names are on the disk."""
    disk = Disk(ROOT)  # type: ignore[arg-type]
    disk.play(Event("open", (ROOT / "a",)))
    disk.play(_sync(1, begins=True))
    disk.play(Event("open", (ROOT / "b",)))
    assert list(disk.lost(ROOT)) == ["a: its name", "b: its name"]
    disk.play(_sync(2, begins=True))
    disk.play(_sync(2, begins=False))
    disk.play(_sync(1, begins=False))
    assert list(disk.lost(ROOT)) == []
