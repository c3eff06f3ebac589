"""Sealed runs become few: a bounded piece a batch, nothing lost whenever it is killed, nothing kept that is past its time."""

import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from joinlib import fault
from joinlib.engine.receipt import SORTED
from joinlib.errors import StateError
from joinlib.model.time import ALWAYS
from joinlib.model.tuning import Tuning
from joinlib.state import unit as units
from joinlib.state.levels import due
from joinlib.state.manifest import Manifest, Merge, Run, Segment, empty
from joinlib.state.run import SortedRun
from joinlib.worker import current
from tests.unit.state.sides import FOREVER, MARKED, Store, newest

TINY = Tuning(levelled=True, file_bytes=0, seal_rows=4, fanout=3, piece_bytes=400, retain_batches=1)


def written(manifest: Manifest, seen: set[str]) -> int:
    """Rows of the pieces that no batch before has written."""
    fresh = [s for s in manifest.sides[0].segments if "-sorted-" in s.name and s.name not in seen]
    seen.update(s.name for s in fresh)
    return sum(s.rows for s in fresh)


@pytest.mark.slow
def test_a_batch_merges_a_bounded_amount(tmp_path: Path) -> None:
    """However many rows there are: a piece a level. All in all each row is written once a level; runs stay few."""
    store, seen, most, total = Store(tmp_path, FOREVER, TINY), set(), 0, 0
    for n in range(200):
        store.batch(n, [2 * n, 2 * n + 1], mark=[2 * n - 7])
        rows = written(store.manifest, seen)
        most, total = max(most, rows), total + rows
        levels = [r.level for r in store.manifest.sides[0].runs]
        assert all(levels.count(level) <= 2 * TINY.fanout for level in levels)

    heads = 400 / TINY.seal_rows
    assert most <= 60
    assert total <= 400 * (1 + math.log(heads, TINY.fanout))
    assert store.content() == [(v, v % 2 == 1 and v <= 391) for v in range(400)]


@pytest.mark.slow
def test_a_wrong_clock_stops_no_merge(tmp_path: Path) -> None:
    """A row far ahead in time stays, and so does its run; all others are merged and go as ever."""
    config, most = replace(MARKED, hold_us=300, marked=False), 0
    store = Store(tmp_path, config, TINY)
    for n in range(600):
        store.batch(n, [n, 10**9] if n == 50 else [n], horizon=n - 300)
        most = max(most, len(store.manifest.sides[0].runs))

    assert most < 40
    assert 10**9 in [v for v, _ in store.content()]


def test_runs_that_are_not_sorted_stay_few(tmp_path: Path) -> None:
    """However small heads are: a budget says nothing of how large two runs may become that are found by other means."""
    config = replace(FOREVER, chained=False, marked=False)
    tuning = Tuning(file_bytes=0, levelled=True, seal_bytes=1, max_runs=3)
    store = Store(tmp_path, config, tuning)
    for n in range(30):
        store.batch(n, [2 * n, 2 * n + 1])

    (side,) = store.manifest.sides
    assert len(side.runs) <= tuning.max_runs + 1 and side.rows == 60
    with store.open() as unit:
        unit.sides[0].check()


def test_all_rows_of_one_hash(tmp_path: Path) -> None:
    """They cannot be told apart by their hashes: more than a piece holds become several segments."""
    store = Store(tmp_path, FOREVER, TINY)
    for n in range(20):
        store.batch(n, [0, 0, 0])

    assert store.content() == [(0, False)] * 60
    assert max(len(r.segments) for r in store.manifest.sides[0].runs if r.level) > 1


@pytest.mark.slow
def test_the_manifest_grows_with_pieces_only(tmp_path: Path) -> None:
    """Not with batches: a window that is full for long needs no more than when it was just full."""
    tuning, hold = replace(TINY, seal_rows=8, piece_bytes=1000), 300
    store, sizes = Store(tmp_path, replace(MARKED, hold_us=hold), tuning), []
    for n in range(900):
        store.batch(n, [n], mark=[n - 5], horizon=n - hold - 1)
        sizes.append((len(store.saved), newest(store.manifest.sides[0]), len(store.files)))

    early, late = (np.max(part, 0) for part in (sizes[:600], sizes[600:]))
    assert np.all(late <= 1.5 * early)
    assert store.manifest.sides[0].rows <= hold * 1.5


@pytest.mark.slow
@pytest.mark.parametrize("point", ["sealed", "piece", "merged"])
def test_killed_in_a_seal_or_a_merge(point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task dies there in batch after batch, and runs again: rows, marks and files are as if it never had."""
    calm, killed = (Store(tmp_path / name, FOREVER, TINY) for name in ("calm", "killed"))
    faults, deaths = tmp_path / "faults", 0
    faults.mkdir()
    monkeypatch.setattr(fault, "_FAULTS", str(faults))
    for n in range(30):
        work = n, [2 * n, 2 * n + 1], [2 * n - 7, 2 * n - 4]
        calm.batch(*work)
        (faults / f"{point}:{n}").touch()
        deaths += _dies(lambda work=work: killed.batch(*work))
        (faults / f"{point}:{n}").unlink(missing_ok=True)
        current().close()
        killed.batch(*work)
        assert killed.saved == calm.saved

    assert deaths >= 5
    assert killed.content() == calm.content()
    assert killed.files == calm.files


def _dies(work: "object") -> bool:
    """Does a process that does this work end by a signal?"""
    child = os.fork()
    if child == 0:
        work()  # type: ignore[operator]
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def test_rows_past_their_time_go_in_a_merge(tmp_path: Path) -> None:
    """A run is dropped whole once all its rows are; a merge leaves out those that are before."""
    config = replace(MARKED, hold_us=1000, marked=False)
    store = Store(tmp_path, config, replace(TINY, piece_bytes=1 << 20))
    for n in range(3):
        store.batch(n, [n, 10 + n, 20 + n, 30 + n], horizon=11 if n == 2 else None)

    assert [r.level for r in store.manifest.sides[0].runs] == [2]
    assert [v for v, _ in store.content()] == [12, 20, 21, 22, 30, 31, 32]


@pytest.mark.parametrize("damage", ["truncated", "bit", "missing"])
def test_a_damaged_piece_is_named(damage: str, tmp_path: Path) -> None:
    """Whoever opens the run next says which file it is; once that is restored all is well."""
    store = Store(tmp_path, FOREVER, TINY)
    for n in range(12):
        store.batch(n, [2 * n, 2 * n + 1])
    piece = next(s for r in store.manifest.sides[0].runs if r.level for s in r.segments)
    path, whole = store.segments / piece.name, store.content()
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        half = len(data) // 2
        path.write_bytes(
            data[:-8] if damage == "truncated" else data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
        )

    with pytest.raises(StateError, match=piece.name), store.open(new_process=True):
        pass
    path.write_bytes(data)
    assert store.content() == whole


def test_a_whole_piece_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State that is larger than memory is not read anew by each process: the guide knows the file that was whole."""
    store = Store(tmp_path, FOREVER, TINY)
    for n in range(12):
        store.batch(n, [2 * n, 2 * n + 1])
    read = []
    monkeypatch.setattr("joinlib.state.segment.verify", lambda _, s: read.append(s.name))
    with store.open(new_process=True):
        assert not [name for name in read if "-sorted-" in name]
    for path in store.indexes.glob("g0-*"):
        path.unlink() if path.name.endswith("0.arrow") else path.write_bytes(path.read_bytes()[:-8])
    with store.open(new_process=True) as unit:
        unit.sides[0].check()
        pieces = {s.name for r in store.manifest.sides[0].runs if r.level for s in r.segments}
        assert pieces <= set(read)


def test_sorted_rows_are_read_page_by_page(tmp_path: Path) -> None:
    """State larger than memory: no page's neighbours come with it, but where a merge reads all of them."""
    store = Store(tmp_path, FOREVER, TINY)
    for n in range(12):
        store.batch(n, [2 * n, 2 * n + 1])
    with store.open(new_process=True) as unit:
        live = next(live for live in unit.sides[0].runs if live.run.level)
        merged = live.in_order(0)

        assert "rr" in advice(live.batches[0]) and "rr" not in advice(merged)
        assert merged.equals(live.batches[0])


def advice(batch: pa.RecordBatch) -> list[str]:
    """What the kernel was told of the memory that the rows lie in."""
    address, inside = batch.column(0).buffers()[1].address, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if "-" in name and not name.endswith(":"):
            start, end = (int(x, 16) for x in name.split("-"))
            inside = start <= address < end
        elif inside and name == "VmFlags:":
            return rest
    raise LookupError(hex(address))


@pytest.mark.slow
def test_the_budget_may_change(tmp_path: Path) -> None:
    """It says where the next head ends, and no more: any change finds all rows and marks."""
    store = Store(tmp_path, FOREVER, TINY)
    some = [
        Tuning(file_bytes=0, seal_rows=5, max_runs=2),
        replace(TINY, seal_rows=1),
        replace(TINY, seal_bytes=1),
        replace(TINY, fanout=2),
    ]
    for n in range(40):
        store.tuning = some[n // 3 % 4]
        current().close()
        store.batch(n, [2 * n, 2 * n + 1], mark=[2 * n - 7])

    assert store.content() == [(v, v % 2 == 1 and v <= 71) for v in range(80)]


def test_a_merge_that_has_begun_is_finished(tmp_path: Path) -> None:
    """Also where the budget is taken away: its runs, pieces and origins would stay as they are forever."""
    store = Store(tmp_path, FOREVER, replace(TINY, piece_bytes=40))
    while not store.manifest.sides[0].merges:
        store.batch(store.manifest.batch + 1, [2 * store.manifest.batch, 2 * store.manifest.batch + 1])
    whole = store.content()
    store.tuning = replace(store.tuning, levelled=False)
    current().close()
    for _ in range(40):
        store.batch(store.manifest.batch + 1, [])

    assert [(r.sealed, r.level) for r in store.manifest.sides[0].runs] == [(True, 1)]
    assert store.manifest.sides[0].merges == () and store.content() == whole


def test_guides_go_with_the_last_sorted_run(tmp_path: Path) -> None:
    """No run is left that asks for any."""
    store = Store(tmp_path, replace(MARKED, hold_us=100), TINY)
    for n in range(6):
        store.batch(n, [2 * n, 2 * n + 1])
    assert list(store.indexes.glob("g0-*"))
    store.batch(6, [], horizon=100)

    assert not list(store.indexes.glob("g0-*"))


def run(number: int, level: int, low: int = 0, high: int = 0, sealed: bool = True) -> Run:
    return Run(number, sealed, (Segment("s", 1, 1, "", 0, 0, low, high),), level)


@pytest.mark.slow
@pytest.mark.parametrize("levelled", [True, False])
def test_runs_and_merges_are_told(levelled: bool, tmp_path: Path) -> None:
    """Every run at its level, with its bytes; of each batch what its merges wrote, as the files say."""
    store, told = Store(tmp_path, FOREVER, replace(TINY, levelled=levelled, max_runs=3)), 0
    for n in range(60):
        store.batch(n, [2 * n, 2 * n + 1])
        _, unit = current().units.get((store.segments, store.indexes))
        files = [f for kind in ("sorted", "merged") for f in store.segments.glob(f"0-{n:08d}-{kind}-*")]
        assert unit.merged_bytes == sum(f.stat().st_size for f in files)
        told += unit.merged_bytes

    runs = store.manifest.sides[0].runs
    held = units.held(store.manifest)
    at = [
        [r for r in runs if (r.level + 1) * r.sealed == place]
        for place in range(max(r.level for r in runs) + 2)
    ]
    assert told and (len(at) > 3) == levelled
    assert held.runs == tuple(map(len, at)) and held.run_bytes == tuple(
        sum(r.bytes for r in some) for some in at
    )
    by_guides = [live.run.bytes for live in unit.sides[0].runs if isinstance(live, SortedRun)]
    assert sum(held.run_bytes[SORTED:]) == sum(by_guides), "what is no memory load"
    alive = store.manifest.sides[0].segments
    assert held[:3] == (120, sum(s.bytes for s in alive), len(alive))
    assert units.held(empty(2, 1)) == (0, 0, 0, (), ())


def test_what_is_merged_when() -> None:
    """A sealed head at once and alone; of sorted runs the oldest ten; one merge a level; none that would outlive its rows."""
    ten = [run(n, 1, n, n) for n in range(10)]
    going = (Merge((), Run(99, True, (), 2), 0, 0, 1),)

    assert due([run(0, 0), run(1, 0), run(2, 0, sealed=False)], (), 0, 10, None) == [run(0, 0)]
    assert due([run(0, 0, sealed=False)], (), 0, 10, None) == []
    assert due(ten[:9], (), 1, 10, None) == [] and due(ten, going, 1, 10, None) == []
    assert due([*ten, run(10, 1)], (), 1, 10, None) == ten
    assert due(ten, (), 1, 10, 27) == ten and due(ten, (), 1, 10, 26) == []
    wide = [run(n, 1, 0, ALWAYS) for n in range(20, 30)]
    assert due([*wide[:9], *ten], (), 1, 10, 27) == ten and due([*wide[:9], *ten[1:]], (), 1, 10, 27) == []
    assert due([*wide, *ten[1:]], (), 1, 10, 27) == wide
