"""A versioned side is two lists, what was there before the last batch and after it, whoever opens it."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from joinlib.index.sealed import HashProbes
from joinlib.model.time import NEVER
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import Manifest
from joinlib.state.side import Arrival, Side
from joinlib.state.unit import Unit
from tests.unit.state.sides import FOREVER, MARKED, SMALL, Store, rows

TUNINGS = [
    SMALL,
    Tuning(seal_rows=2, file_bytes=100, merge_segments=4, max_segments=7, max_runs=1, fanout=3),
    Tuning(seal_rows=3, file_bytes=100, levelled=True, fanout=2, piece_bytes=1),
    Tuning(max_segments=30, spans=2, file_bytes=0, small_bytes=0),
    Tuning(),
]
CONFIGS = [
    replace(FOREVER, marked=False, mutable=True, versioned=True),
    replace(MARKED, marked=False, mutable=True, versioned=True),
    replace(FOREVER, marked=False, versioned=True),
]
VALUES = st.lists(st.integers(0, 5), max_size=6)


def found(side: Side, before: bool, most: int) -> Counter[int]:
    """What probes find of one version."""
    some: Counter[int] = Counter()
    wanted = rows(list(range(most)))
    for live in side.runs:
        there = side.version(live, before)
        for positions, numbers, _ in live.probe(HashProbes(wanted.column(0).to_numpy()), 100):
            some.update((positions[there(numbers)] if there else positions).tolist())
    return some


class TwoLists(RuleBasedStateMachine):
    """`before` and `after` are the bags of values; a value is its row's time, and later batches have higher ones."""

    @initialize(tuning=st.sampled_from(TUNINGS), config=st.sampled_from(range(len(CONFIGS))))
    def empty(self, tuning: Tuning, config: int) -> None:
        self.folder = TemporaryDirectory()
        self.config = CONFIGS[config]
        self.store = Store(Path(self.folder.name), self.config, tuning)
        self.before: Counter[int] = Counter()
        self.after: Counter[int] = Counter()
        self.batch, self.mark = 0, NEVER

    def teardown(self) -> None:
        self.folder.cleanup()

    @property
    def horizon(self) -> int:
        """Rows up to it may be there or not."""
        timed = self.config.time is not None and self.mark > NEVER
        return self.mark - (self.config.hold_us or 0) - 1 if timed else NEVER

    def work(self, unit: Unit, gone: Counter[int], new: list[int]) -> Manifest:
        """One attempt at a batch; its two versions are there before it is committed."""
        side = unit.sides[0]
        unit.tidy(self.batch, self.mark)
        if gone:
            missing = side.delete(rows(sorted(gone)), np.array([gone[v] for v in sorted(gone)], np.int64))
            lacked = +Counter(dict(zip(sorted(gone), missing.tolist(), strict=True)))
            assert self.needed(lacked) == self.needed(gone - self.before)
        if new:
            side.insert(self.batch, Arrival(rows(new)))
        self.same(side)
        side.check()
        return unit.commit(self.store.manifest, self.batch)

    def needed(self, bag: Counter[int]) -> Counter[int]:
        return Counter({v: n for v, n in bag.items() if n and v > self.horizon})

    def same(self, side: Side) -> None:
        most = self.batch + 10
        assert self.needed(found(side, True, most)) == self.needed(self.before)
        assert self.needed(found(side, False, most)) == self.needed(self.after)
        living = [live.of_hashes(rows(list(range(most))).column(0).to_numpy())[0] for live in side.runs]
        assert self.needed(Counter(v for some in living for v in some.tolist())) == self.needed(self.after)

    @rule(gone=VALUES, new=VALUES, attempts=st.integers(1, 3), mark=st.integers(-20, 5))
    def run(self, gone: list[int], new: list[int], attempts: int, mark: int) -> None:
        """One batch, tried several times: each begins with the state before it."""
        taken = Counter(v + self.batch for v in gone) if self.config.mutable else Counter[int]()
        came = [v + self.batch for v in new]
        self.before = self.after
        self.after = self.before - taken + Counter(came)
        made = []
        for n in range(attempts):
            with self.store.open(new_process=n == 1) as unit:
                made.append(self.work(unit, taken, came))
        assert all(m == made[0] for m in made), "two attempts differ"
        self.store.saved = made[0].encode()
        self.batch, self.mark = self.batch + 1, max(self.mark, self.batch + mark)

    @rule()
    def lose_the_process(self) -> None:
        with self.store.open(new_process=True):
            pass

    @rule()
    def lose_the_indexes(self) -> None:
        for path in self.store.indexes.glob("*.index"):
            path.unlink()

    @invariant()
    def read_by_others(self) -> None:
        """Who opens the batch's manifest finds both, and changes nothing that it names."""
        if hasattr(self, "store") and self.batch:
            files = self.store.files
            with self.store.open(swept=False) as unit:
                self.same(unit.sides[0])
                unit.sides[0].check()
            assert self.store.files == files
            assert self.store.manifest.files <= files


TestTwoLists = TwoLists.TestCase
TestTwoLists.settings = settings(max_examples=40, stateful_step_count=20)


def test_a_quiet_batch_has_one_version(tmp_path: Path) -> None:
    """What came and went before it is settled, and its manifest says nothing of rows that were there before."""
    store = Store(tmp_path, CONFIGS[0])
    for batch, (gone, new) in enumerate([([], [1, 2]), ([1], [3]), ([], [])]):
        with store.open() as unit:
            unit.tidy(batch, NEVER)
            if gone:
                unit.sides[0].delete(rows(gone), np.ones(len(gone), np.int64))
            if new:
                unit.sides[0].insert(batch, Arrival(rows(new)))
            store.saved = unit.commit(store.manifest, batch).encode()
        assert (b'"seen"' in store.saved) == bool(new)
        with store.open(new_process=True, swept=False) as unit:
            versions = [sorted(found(unit.sides[0], before, 5)) for before in (True, False)]
        assert versions == [[[], [1, 2]], [[1, 2], [2, 3]], [[2, 3], [2, 3]]][batch]
