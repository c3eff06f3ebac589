"""A side whose rows are deleted behaves as the bag of rows that live, however it was merged and sealed."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.index.sealed import HashProbes
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import Manifest
from joinlib.state.side import Arrival, Side
from joinlib.state.unit import Unit
from tests.unit.state.sides import FOREVER, SMALL, Store, rows

MUTABLE = replace(FOREVER, mutable=True)
TUNINGS = [
    SMALL,
    Tuning(seal_rows=2, file_bytes=100, merge_segments=4, max_segments=7, max_runs=1, fanout=3),
    Tuning(seal_rows=3, file_bytes=100, levelled=True, fanout=2, piece_bytes=1),
    Tuning(max_segments=30, file_bytes=0, small_bytes=0),
]
BATCHES = st.lists(
    st.tuples(st.lists(st.integers(0, 5), max_size=6), st.lists(st.integers(0, 5), max_size=6)), max_size=12
)


def living(side: Side) -> Counter[int]:
    """What probes find."""
    found: Counter[int] = Counter()
    wanted = rows(list(range(6))).column(0).to_numpy()
    for live in side.runs:
        positions, _ = live.of_hashes(wanted)
        found.update(positions.tolist())
        reached = [r for _, numbers, _ in live.probe(HashProbes(wanted), 100) for r in numbers.tolist()]
        assert len(reached) == live.run.rows
    return found


def step(
    unit: Unit, before: Manifest, batch: int, gone: Counter[int], new: list[int]
) -> tuple[Manifest, Counter[int]]:
    """Delete, then insert, then commit; return what was not there."""
    side = unit.sides[0]
    values = sorted(gone)
    missing = side.delete(rows(values), np.array([gone[v] for v in values], np.int64))
    if new:
        side.insert(batch, Arrival(rows(new)))
    return unit.commit(before, batch), +Counter(dict(zip(values, missing.tolist(), strict=True)))


@given(BATCHES, st.sampled_from(TUNINGS), st.sets(st.integers(0, 12)))
def test_deleted_rows_are_gone(
    batches: list[tuple[list[int], list[int]]], tuning: Tuning, restarts: set[int]
) -> None:
    """The oldest of equal rows go first; what is not there is reported; two attempts write the same."""
    bag: Counter[int] = Counter()
    with TemporaryDirectory() as folder:
        store = Store(Path(folder), MUTABLE, tuning)
        for batch, (gone, new) in enumerate(batches):
            manifests = []
            for _ in range(2):
                with store.open(new_process=batch in restarts) as unit:
                    manifest, missing = step(unit, store.manifest, batch, Counter(gone), new)
                    manifests.append(manifest)
                    unit.sides[0].check()
            assert manifests[0] == manifests[1], "two attempts differ"
            assert missing == Counter(gone) - bag
            bag = bag - Counter(gone) + Counter(new)
            store.saved = manifests[0].encode()
            with store.open() as unit:
                assert +living(unit.sides[0]) == bag


def test_state_is_bounded_by_what_lives(tmp_path: Path) -> None:
    """However often the same rows are replaced."""
    store = Store(tmp_path, MUTABLE, Tuning(file_bytes=0))
    for batch in range(60):
        with store.open() as unit:
            old = Counter(range(100)) if batch else Counter()
            manifest, missing = step(unit, store.manifest, batch, old, list(range(100)))
            assert not missing
        store.saved = manifest.encode()
        assert sum(run.rows for run in manifest.sides[0].runs) <= 150


def test_marks_can_be_taken(tmp_path: Path) -> None:
    """The log says what a row's flags are now, not only that they were set."""
    store = Store(tmp_path, MUTABLE)
    for batch, change in enumerate(["insert", "mark", "unmark", "mark"]):
        with store.open(new_process=True) as unit:
            side, two = unit.sides[0], np.array([0, 1], np.int32)
            if change == "insert":
                side.insert(batch, Arrival(rows([1, 2, 3])))
            elif change == "mark":
                assert side.mark(side.head, two).tolist() == [0, 1]
                assert not len(side.mark(side.head, two))
            else:
                side.unmark(side.head, two[:1])
            store.saved = unit.commit(store.manifest, batch).encode()
        if change == "unmark":
            with store.open(new_process=True) as unit:
                assert unit.sides[0].head.index.marks.tolist() == [0, 1, 0]
            with store.open() as unit:
                unit.sides[0].unmark(unit.sides[0].head, two[1:])
                store.saved = unit.commit(store.manifest, batch).encode()


@pytest.mark.parametrize("tuning", TUNINGS)
def test_many_equal_rows(tmp_path: Path, tuning: Tuning) -> None:
    """A deletion takes as many as it says, from as many runs as it needs."""
    store = Store(tmp_path, MUTABLE, tuning)
    for batch in range(5):
        with store.open() as unit:
            manifest, _ = step(unit, store.manifest, batch, Counter(), [1, 1, 2])
        store.saved = manifest.encode()
    with store.open() as unit:
        manifest, missing = step(unit, store.manifest, 5, Counter({1: 7, 2: 9}), [])
        assert missing == Counter({2: 4})
    store.saved = manifest.encode()
    with store.open(new_process=True) as unit:
        assert +living(unit.sides[0]) == Counter({1: 3})
        assert isinstance(unit.dead_rows, int)


def test_arrow_rows_are_those_of_the_schema() -> None:
    """The tests' own rows."""
    assert rows([1]).schema == pa.schema(FOREVER.schema)
