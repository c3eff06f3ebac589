"""What lies in the checkpoint: whole files that are what they were, no more than are needed, none too few."""

import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from joinlib.errors import StateError
from joinlib.model.tuning import Tuning
from joinlib.state import segment
from joinlib.state.manifest import Manifest, decode
from joinlib.state.side import Arrival
from joinlib.worker import current
from tests.unit.state.sides import FOREVER, MARKED, SMALL, Store, newest, rows, work

FILES = Tuning(file_bytes=0)  # each segment is a file, however few its rows


def names(store: Store, kind: str) -> list[str]:
    side = store.manifest.sides[0]
    return [s.name for s in (side.marks if kind == "marks" else side.segments[:1])]


@pytest.mark.parametrize("kind", ["rows", "marks"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "bit", "missing"])
def test_a_damaged_segment_is_named(kind: str, damage: str, tmp_path: Path) -> None:
    """Whatever has happened to a file, rows or marks: it is named and nothing is opened."""
    store = Store(tmp_path, FOREVER, FILES)
    store.batch(0, [1, 2, 3], mark=[2])
    for path in store.indexes.glob("*.index"):
        path.unlink()
    path = store.segments / names(store, kind)[0]
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        middle = len(data) // 2
        bad = {
            "truncated": data[:-1],
            "empty": b"",
            "bit": data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :],
        }
        path.write_bytes(bad[damage])

    with pytest.raises(StateError, match=path.name), store.open(new_process=True):
        pass
    path.write_bytes(data)  # restored from a copy: all is well again
    assert store.content() == [(1, False), (2, True), (3, False)]


def test_a_segment_that_is_there_and_whole_stays(tmp_path: Path) -> None:
    """It may be on the disk already, and what a late attempt writes is not; one that was cut off is written anew."""
    some = pa.record_batch([pa.array([1, 2, 3])], ["k"])
    written = segment.write(tmp_path, "0-7", some)
    path = tmp_path / written.name
    first, data = path.stat().st_ino, path.read_bytes()
    assert segment.write(tmp_path, "0-7", some) == written
    assert path.stat().st_ino == first
    for damaged in (b"", data[:-1]):
        path.write_bytes(damaged)
        assert segment.write(tmp_path, "0-7", some) == written
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_a_manifest_survives_encoding(tmp_path: Path) -> None:
    """decode is the inverse of encode, whether rows are in files or in the manifest."""
    store = Store(tmp_path, tuning=replace(SMALL, file_bytes=60))
    for n in range(9):
        store.batch(n, [n, n + 1], mark=[n])
    manifest = store.manifest

    assert manifest.retired and decode(manifest.encode()) == manifest
    assert {s.content is None for s in manifest.sides[0].segments} == {True, False}


def test_few_rows_make_no_file(tmp_path: Path) -> None:
    """They stand in the manifest until a merge has made them many; another process finds them there, whole or not at all."""
    store = Store(tmp_path, FOREVER, Tuning(file_bytes=1000))
    for n in range(8):
        store.batch(n, [n], mark=[n])
    assert store.files == store.manifest.names == set()
    lose_indexes(store)
    assert store.content() == [(n, True) for n in range(8)]

    store.saved = store.saved[:-1] + bytes([store.saved[-1] ^ 1])
    lose_indexes(store)
    with pytest.raises(StateError, match="damaged"), store.open():
        pass


def lose_indexes(store: Store) -> None:
    """As a new process on another executor finds it."""
    current().close()
    for path in store.indexes.glob("*.index"):
        path.unlink()


def test_retired_files_are_deleted_when_no_batch_can_come_back(tmp_path: Path) -> None:
    """A merged segment stays for the batches that Spark retains, so that each of them can be opened; then it is gone."""
    store = Store(tmp_path, FOREVER, Tuning(file_bytes=0, seal_rows=1, fanout=2, retain_batches=3))
    saved = []
    for n in range(12):
        store.batch(n, [n])
        saved.append(store.saved)
        assert store.files == store.manifest.names
        assert all(n - batch < 3 for batch, _, _ in store.manifest.retired)

    for n in (9, 10, 11):
        store.saved = saved[n]
        assert store.content() == [(v, False) for v in range(n + 1)]
        with store.open(new_process=True):
            pass


def test_orphans_are_swept(tmp_path: Path) -> None:
    """What attempts that died have left is gone once the batch is over and a new process has opened the unit."""
    store = Store(tmp_path, FOREVER, FILES)
    store.batch(0, [1])
    with store.open() as unit:
        unit.sides[0].insert(1, Arrival(rows([7, 8])))
    (store.segments / ".0-00000001.12.34").write_bytes(b"half")
    left = store.files - store.manifest.names
    with store.open(new_process=True) as unit:
        store.saved = work(unit, store.manifest, 1, [2]).encode()
    store.batch(2, [3])

    assert len(left) == 2 and store.files == store.manifest.names


def test_half_written_caches_are_swept(tmp_path: Path) -> None:
    """Of indexes, marks and guides: a new process deletes what was cut off, and nothing of another side."""
    store = Store(tmp_path, FOREVER, SMALL)
    for n in range(9):
        store.batch(n, [2 * n, 2 * n + 1], mark=[n])
    caches = {p.name for p in store.indexes.iterdir()}
    cut = [f"{name}.12.34" for name in caches - {"lock"}]
    others = ["1-0.index", "g1-1-00000001-sorted-0.arrow"]
    for name in (*cut, *others):
        (store.indexes / name).write_bytes(b"half")
    with store.open(new_process=True):
        pass

    assert {name.partition("-")[0] for name in cut} == {"0", "g0"}
    assert {p.name for p in store.indexes.iterdir()} == {*caches, *others}


def test_a_late_attempt_sweeps_nothing_that_lives(tmp_path: Path) -> None:
    """A task of batch 1, long given up, opens an old manifest while batches 1 and 2 are committed."""
    store = Store(tmp_path, FOREVER, FILES)
    store.batch(0, [1])
    old = store.saved
    store.batch(1, [2])
    store.batch(2, [3])
    new, store.saved = store.saved, old
    with store.open(new_process=True) as unit:
        work(unit, store.manifest, 1, [2])
    store.saved = new

    assert store.content() == [(1, False), (2, False), (3, False)]


class Work:
    """Counts the rows that merges have rewritten."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.rows = 0

    def count(self, manifest: Manifest) -> None:
        for s in manifest.sides[0].segments:
            if "-merged-" in s.name and s.name not in self.seen:
                self.seen.add(s.name)
                self.rows += s.rows


@pytest.mark.slow
def test_ten_thousand_tiny_batches(tmp_path: Path) -> None:
    """Manifest, files and work of a batch stay flat; rewriting costs each row a logarithm."""
    store, work = Store(tmp_path, FOREVER, FILES), Work()
    sizes, files = [], []
    for n in range(10_000):
        store.batch(n, [n], mark=[n - 1] if n % 100 == 0 else [])
        work.count(store.manifest)
        sizes.append(len(store.saved))
        if n % 10 == 0:
            files.append(len(store.files))

    assert max(sizes[1000:]) <= 1.3 * max(sizes[:1000]) and max(files[100:]) <= 1.3 * max(files[:100])
    assert max(files) <= 32 + 32 + 9 * 2
    assert work.rows <= 10_000 * math.log2(10_000)
    assert len(store.content()) == 10_000


@pytest.mark.slow
def test_a_long_window_of_tiny_batches(tmp_path: Path) -> None:
    """The same where old runs take most of the room: a window of 400 batches, its head sealed every fifty."""
    hold = 400
    config = replace(MARKED, hold_us=hold, marked=False)
    store, work = Store(tmp_path, config, FILES), Work()
    sizes = []
    for n in range(1200):
        store.batch(n, [n], horizon=n - hold - 1)
        work.count(store.manifest)
        sizes.append(store.manifest.sides[0].rows)

    assert max(sizes) <= hold + hold // 4 + 2
    assert work.rows <= 1200 * math.log2(1200)


def test_the_sweep_of_limits(tmp_path: Path) -> None:
    """Never more than the allowed live segments, however small the limits are."""
    store = Store(tmp_path, MARKED, SMALL)
    for n in range(60):
        store.batch(n, [n], mark=[n - 3], horizon=n - 40)
        assert newest(store.manifest.sides[0]) <= SMALL.max_segments


@pytest.mark.parametrize(("small_bytes", "most"), [(0, 28), (1 << 14, 8)])
def test_small_segments_are_merged_sooner(small_bytes: int, most: int, tmp_path: Path) -> None:
    """A gather visits every segment: of small ones there are few, of large ones as many as are allowed."""
    store = Store(tmp_path, FOREVER, Tuning(file_bytes=0, small_bytes=small_bytes))
    counts = []
    for n in range(40):
        store.batch(n, [n])
        counts.append(len(store.manifest.sides[0].segments))

    assert most // 2 <= max(counts) <= most
    assert store.content() == [(n, False) for n in range(40)]


def test_limits_that_cannot_be_kept_are_refused() -> None:
    """More sealed runs than segments would be no limit."""
    with pytest.raises(ValueError, match="max_segments of at least 22"):
        Tuning(max_segments=12)


def test_an_open_unit_holds_one_file_an_index(tmp_path: Path) -> None:
    """A worker serves hundreds of units: neither their locks nor their segments stay open, and nothing of a unit let go."""
    store = Store(tmp_path, FOREVER, FILES)
    for batch in range(3):
        store.batch(batch, [1, 2, 3], mark=[2])
    assert {p.suffix for p in _held(tmp_path)} == {".index"}
    current().close()
    assert not _held(tmp_path)


def _held(folder: Path) -> list[Path]:
    links = [f.readlink() for f in Path("/proc/self/fd").iterdir() if f.is_symlink()]
    return [path for path in links if path.is_relative_to(folder)]


def test_another_run_looks_at_files_anew(tmp_path: Path) -> None:
    """Also in a process that has them open since the run before: what was damaged meanwhile is named."""
    store = Store(tmp_path)
    store.batch(0, [1, 2, 3])
    with store.open(run="one"):
        pass
    file = store.segments / names(store, "rows")[0]
    whole = file.read_bytes()
    file.write_bytes(whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:])
    with pytest.raises(StateError, match="is damaged"), store.open(run="two"):
        pass
