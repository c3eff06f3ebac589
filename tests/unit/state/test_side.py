"""A side behaves as what its manifest says, whoever opens it, however it was merged and sealed."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from joinlib.model.time import NEVER
from joinlib.model.tuning import Tuning
from joinlib.state.side import Arrival
from tests.unit.state.sides import FOREVER, MARKED, SMALL, Store, content, newest, rows, work


class AgainstList(RuleBasedStateMachine):
    """`rows` are (value, marked) of all that ever came, in their order; values ascend, a value is its row's time."""

    @initialize(
        tuning=st.sampled_from(
            [
                SMALL,
                Tuning(seal_rows=2, file_bytes=100, merge_segments=4, max_segments=7, max_runs=1, fanout=3),
                Tuning(seal_rows=2, file_bytes=100, levelled=True, fanout=3),
                Tuning(max_segments=30, spans=2, file_bytes=0, small_bytes=0),
                Tuning(),
            ]
        )
    )
    def empty(self, tuning: Tuning) -> None:
        self.folder = TemporaryDirectory()
        self.store = Store(Path(self.folder.name), MARKED, tuning)
        self.rows: list[tuple[int, bool]] = []
        self.batch = self.next = 0
        self.horizon = NEVER

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(
        count=st.integers(0, 4),
        marks=st.sets(st.integers(0, 60), max_size=5),
        back=st.integers(0, 40),
        attempts=st.integers(1, 3),
    )
    def run(self, count: int, marks: set[int], back: int, attempts: int) -> None:
        """One batch: rows, marks, expiry; tried several times."""
        times = list(range(self.next, self.next + count))
        horizon = max(self.horizon, self.next - back) if back < 20 else None  # time never goes back
        manifests, files = [], []
        for n in range(attempts):
            with self.store.open(new_process=n == 1) as unit:
                manifests.append(work(unit, self.store.manifest, self.batch, times, sorted(marks), horizon))
                files.append(self.store.files)
        assert all(m == manifests[0] for m in manifests), "two attempts differ"
        assert manifests[0].names <= files[0]
        self.store.saved = manifests[0].encode()
        self.next, self.batch = self.next + count, self.batch + 1
        self.rows = [(v, m or v in marks) for v, m in [*self.rows, *((t, False) for t in times)]]
        self.horizon = self.horizon if horizon is None else horizon

    def holds(self, content: list[tuple[int, bool]]) -> bool:
        """All rows behind the horizon, and their marks; of those up to it any, since only runs and pieces are dropped."""
        values = [v for v, _ in content]
        known = len(set(values)) == len(values) and set(values) <= {v for v, _ in self.rows}
        alive = [[r for r in rows if r[0] > self.horizon] for rows in (content, self.rows)]
        return known and alive[0] == alive[1]

    @rule()
    def lose_the_process(self) -> None:
        with self.store.open(new_process=True):
            pass

    @rule()
    def lose_the_indexes(self) -> None:
        for path in self.store.indexes.glob("*.index"):
            path.unlink()

    @rule(times=st.integers(1, 3), marks=st.sets(st.integers(0, 60), max_size=5))
    def die_half_way(self, times: int, marks: set[int]) -> None:
        with self.store.open() as unit:
            unit.sides[0].insert(self.batch, Arrival(rows(range(1000, 1000 + times))))
            for live in unit.sides[0].runs:
                unit.sides[0].mark(live, content_rows(live.run.rows, marks))

    @invariant()
    def same(self) -> None:
        if hasattr(self, "store"):
            assert self.holds(self.store.content())
            assert all(newest(s) <= self.store.tuning.max_segments for s in self.store.manifest.sides)

    @invariant()
    def restored(self) -> None:
        if hasattr(self, "store"):
            with self.store.open(new_process=True) as unit:
                unit.sides[0].check()
                assert self.holds(content(unit.sides[0]))


def content_rows(count: int, marks: set[int]) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return np.array([m for m in marks if m < count], np.int32)


TestAgainstList = AgainstList.TestCase
TestAgainstList.settings = settings(max_examples=20, stateful_step_count=20)


def test_unmatched_rows_come_out_once(tmp_path: Path) -> None:
    """As the horizon moves each row without a mark is due exactly once, also rows that came behind it."""
    store = Store(tmp_path, MARKED, Tuning(seal_rows=2, max_runs=1, merge_segments=2, max_segments=8))
    store.batch(0, [1, 5, 9], mark=[5])
    store.batch(1, [2, 6])
    due = []
    for before, after, new in ((NEVER, 2, []), (2, 6, []), (6, 8, [3, 7]), (8, 100, [8])):
        with store.open() as unit:
            side = unit.sides[0]
            if new:
                side.insert(2, Arrival(rows(new)))
            due.append(
                sorted(
                    live.times("a.t")[i] for live, numbers in side.unmatched(before, after) for i in numbers
                )
            )

    assert due == [[1, 2], [6], [3, 7], [8, 9]]


@pytest.mark.parametrize(
    "tuning", [Tuning(seal_rows=1, max_runs=1), Tuning(seal_rows=1, levelled=True, fanout=6)]
)
def test_marks_follow_merged_runs(tuning: Tuning, tmp_path: Path) -> None:
    """Runs become one: its marks are theirs, here and in a process that reads them from the files."""
    store = Store(tmp_path, FOREVER, tuning)
    for n in range(6):
        store.batch(n, [2 * n, 2 * n + 1], mark=[2 * n])
    expected = [(v, v % 2 == 0) for v in range(12)]

    assert store.content() == expected
    with store.open(new_process=True):
        pass
    for path in store.indexes.glob("*.index"):
        path.unlink()
    assert store.content() == expected
    assert len(store.manifest.sides[0].runs) == 1


def test_marks_of_expired_runs_go_with_the_next_rewrite(tmp_path: Path) -> None:
    """Marks do not pile up for rows that are gone."""
    store = Store(tmp_path, MARKED, SMALL)
    for n in range(30):
        store.batch(n, list(range(5 * n, 5 * n + 5)), mark=list(range(5 * n + 5)), horizon=5 * n - 1)

    assert sum(s.rows for s in store.manifest.sides[0].marks) <= 3 * 5
    assert store.content() == [(v, True) for v in range(145, 150)]


def test_another_process_takes_over(tmp_path: Path) -> None:
    """Two processes take turns: each catches up with what the other did, growth included."""
    from joinlib.state.unit import Unit

    store = Store(tmp_path, FOREVER, Tuning())
    both = [Unit(store.segments, store.indexes, 0, [FOREVER], store.tuning) for _ in range(2)]
    for n in range(8):
        unit = both[n // 2 % 2]
        unit.open(store.manifest)
        store.saved = work(unit, store.manifest, n, range(300 * n, 300 * n + 300), mark=[300 * n]).encode()
        unit.sides[0].check()

    assert store.content() == [(v, v % 300 == 0) for v in range(2400)]


def test_a_late_attempt_finds_an_index_of_the_future(tmp_path: Path) -> None:
    """A process runs a batch again after the next one: marks of that one are not those of a run it makes."""
    from joinlib.state.unit import Unit

    store = Store(tmp_path, FOREVER, Tuning(seal_rows=2, max_runs=1))
    one, late = (Unit(store.segments, store.indexes, 0, [FOREVER], store.tuning) for _ in range(2))
    saved = [store.manifest]
    for n, (times, mark) in enumerate([([0, 1], [0]), ([2, 3], []), ([], [2, 3])]):
        if n == 1:
            late.open(saved[1])
        one.open(saved[n])
        saved.append(work(one, saved[n], n, times, mark))

    late.open(saved[1])
    assert work(late, saved[1], 1, [2, 3]) == saved[2]


def test_a_clean_prefix_is_caught_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index some batches old gets only what is new; one that is not known is built anew."""
    from joinlib.index.chains import Chains

    store = Store(tmp_path, FOREVER, Tuning())
    store.batch(0, [0, 1, 2])
    index = next(store.indexes.glob("*.index"))
    old = index.read_bytes()
    store.batch(1, [3])
    new = index.read_bytes()
    inserted = []
    insert = Chains.insert
    monkeypatch.setattr(
        Chains, "insert", lambda self, hashes: inserted.append(len(hashes)) or insert(self, hashes)
    )

    for data in (old, new):
        index.write_bytes(data)
        with store.open(new_process=True) as unit:
            unit.sides[0].check()
    assert inserted == [1]
    index.write_bytes(old)
    store.saved = re.sub(rb'"token":\d+', b'"token":12345', store.saved)  # other rows
    with store.open(new_process=True) as unit:
        unit.sides[0].check()
    assert inserted == [1, 3, 1]
