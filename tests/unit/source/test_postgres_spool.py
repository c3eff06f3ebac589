"""The log of a spool, without a database: what was forgotten is gone, the rest is found, by any process."""

from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.errors import StateError
from joinlib.source.postgres import spool
from joinlib.source.postgres.decode import Snapshot
from joinlib.source.postgres.spool import SlotSpool, files


def filled(folder: Path, peeks: int) -> SlotSpool:
    """A peek n has n % 3 + 1 batches for `a`, and every second one a batch for `b`."""
    known = SlotSpool(folder, ["a", "b"])
    known.make("slot")
    for n in range(peeks):
        with files(folder, known.number) as made:
            for _ in range(n % 3 + 1):
                made.add("a", pa.record_batch({"x": [n]}))
            if n % 2:
                made.add("b", pa.record_batch({"x": [n, n]}))
        entry = {"number": known.number, "at": 100 + n, "files": made.batches}
        known.append(entry | ({"snapshot": "5:9:6,7", "until": 3} if n == 0 else {}))
    return known


def test_folding_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of slices, the position and the snapshot are those from before; the next file has a new name."""
    monkeypatch.setattr(spool, "_FOLDED", 10)
    known = filled(tmp_path, 20)
    slices = {name: known.between(name, 0, known.inputs[name].slices) for name in ("a", "b")}
    rows = known.rows_before("b", 5)
    known.forget("b", 5)
    known.forget("a", 25)
    for found in (known, SlotSpool(tmp_path, ["a", "b"])):
        assert found.between("a", 25, len(slices["a"])) == slices["a"][25:]
        assert found.between("b", 5, len(slices["b"])) == slices["b"][5:]
        assert found.rows_before("b", 5) == rows == 10
        assert (found.at, found.number, found.made) == (119, 20, True)
        assert found.snapshot == Snapshot(5, 9, (6, 7), 3)
        with pytest.raises(StateError, match="restore the folder or start with a new checkpoint"):
            found.between("b", 4, 6)
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) < 20
    assert {Path(s.path) for s in [*slices["a"][25:], *slices["b"][5:]]} == set(tmp_path.glob("*.arrow"))


def test_a_peek_that_failed_leaves_nothing(tmp_path: Path) -> None:
    """Its number is used again."""

    def fails() -> None:
        with files(tmp_path, 3) as made:
            made.add("a", pa.record_batch({"x": [1]}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_knows_what_it_holds() -> None:
    """Numbers of transactions have 32 bits in the log, and go round."""
    from joinlib.source.postgres.wire import _visible

    wide = 7 << 32
    taken = Snapshot.parsed(f"{wide + 5}:{wide + 9}:{wide + 5},{wide + 7}", 0).numbers
    held = [x for x in (0xFFFFFFF0, 4, 5, 6, 7, 8, 9, 1000) if _visible(x, taken[0], taken[1], taken[2:])]
    assert held == [0xFFFFFFF0, 4, 6, 8]
    assert Snapshot.parsed("5:9:6,7", 3).text == "5:9:6,7"
