"""The hash-chain index against a list: after every operation it returns exactly what a scan would keep."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from joinlib.index.chains import Chains
from joinlib.index.kernels import group

SKIP = 3  # top bits that chose the unit
HASHES = [5 << 61 | x for x in (0, 1, 2, 1 << 60, (1 << 60) + 1, (1 << 61) - 1)]  # buckets shared and alone
some = st.lists(st.sampled_from(HASHES), max_size=12)


class AgainstList(RuleBasedStateMachine):
    """`rows[i]` is the hash of row i."""

    @initialize()
    def empty(self) -> None:
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "x.index"
        self.chains = Chains(self.path, SKIP, 1)
        self.rows: list[int] = []
        self.marks: set[int] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    def _insert(self, chains: Chains, hashes: list[int]) -> None:
        chains.begin()
        assert chains.dirty
        first = chains.insert(np.array(hashes, np.uint64))
        chains.finish(len(self.rows) + len(hashes) + 1, len(self.marks))
        assert first == len(self.rows)
        self.rows += hashes

    @rule(hashes=some)
    def insert(self, hashes: list[int]) -> None:
        self._insert(self.chains, hashes)

    @rule(hashes=some, times=st.sampled_from([10, 200]))
    def grow(self, hashes: list[int], times: int) -> None:
        if len(self.rows) < 1100:
            self._insert(self.chains, hashes * times)

    @rule(hashes=some)
    def grow_in_another_process(self, hashes: list[int]) -> None:
        room = 2 ** max(10, (len(self.rows) - 1).bit_length()) - len(self.rows) + 1
        if len(self.rows) < 1100 and hashes:
            self._insert(Chains(self.path, SKIP), (hashes * room)[:room])
            assert self.chains.stale
            self.chains = Chains(self.path, SKIP)
            assert not self.chains.stale

    @rule()
    def reopen(self) -> None:
        self.chains = Chains(self.path, SKIP)

    @rule(wanted=some, limit=st.sampled_from([1, 2, 7, 10_000]))
    def probe(self, wanted: list[int], limit: int) -> None:
        found = list(self.chains.probe(np.array(wanted, np.uint64), limit))
        pairs = [(int(p), int(r)) for positions, rows in found for p, r in zip(positions, rows, strict=True)]
        homes = {h: [i for i, x in enumerate(self.rows) if x == h] for h in set(wanted)}

        assert all(len(p) <= max(limit, 1) for p, _ in found)
        assert [p for p, _ in pairs] == sorted(p for p, _ in pairs)
        assert sorted(pairs) == [(p, r) for p, h in enumerate(wanted) for r in homes[h]]

    @rule(data=st.data())
    def mark(self, data: st.DataObject) -> None:
        if self.rows:
            chosen = data.draw(st.lists(st.integers(0, len(self.rows) - 1), max_size=6))
            fresh = self.chains.mark(np.array(chosen, np.int32)).tolist()
            assert fresh == [r for r in dict.fromkeys(chosen) if r not in self.marks]
            self.marks |= set(chosen)

    @rule()
    def clear_marks(self) -> None:
        self.chains.clear_marks()
        self.marks.clear()

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "chains"):
            self.chains.check()
            assert self.chains.hashes.tolist() == self.rows
            assert set(np.flatnonzero(self.chains.marks).tolist()) == self.marks
            assert not self.chains.dirty


TestAgainstList = AgainstList.TestCase
TestAgainstList.settings = settings(max_examples=25, stateful_step_count=15)


def test_tokens_and_dirty_survive_reopening(tmp_path: Path) -> None:
    """Another process sees what the index holds, and that a change was cut off."""
    first = Chains(tmp_path / "a", 0)
    first.finish(7, 8)
    first.begin()
    again = Chains(tmp_path / "a", 0)

    assert (again.token, again.marks_token, again.dirty) == (7, 8, True)


def test_growth_keeps_tokens_and_is_dirty_until_finished(tmp_path: Path) -> None:
    """Whoever opens an index that was killed while growing does not trust it."""
    chains = Chains(tmp_path / "a", 0)
    chains.finish(7, 8)
    chains.begin()
    chains.insert(np.arange(5000, dtype=np.uint64))
    again = Chains(tmp_path / "a", 0)

    assert (again.rows, again.token, again.marks_token, again.dirty) == (5000, 7, 8, True)


def test_a_file_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dying while an index is made leaves nothing that the next one stumbles over."""
    import os

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            Chains(tmp_path / "a", 0)

    assert Chains(tmp_path / "a", 0).rows == 0


def test_an_index_of_another_number_of_units_is_made_anew(tmp_path: Path) -> None:
    """Its buckets are others. So is a file that is no index; whoever has the old one mapped notices."""
    few = Chains(tmp_path / "a", 1)
    few.insert(np.arange(5, dtype=np.uint64))
    many = Chains(tmp_path / "a", 2)
    assert (many.rows, many.skip_bits, few.stale) == (0, 2, True)
    for content in (b"", b"not an index " * 1000):
        (tmp_path / "a").write_bytes(content)
        assert Chains(tmp_path / "a", 2).rows == 0


def test_a_removed_file_is_stale(tmp_path: Path) -> None:
    """An open map of a file that is gone is of no use."""
    chains = Chains(tmp_path / "a", 0)
    chains.path.unlink()

    assert chains.stale


def test_an_unused_index_takes_no_room(tmp_path: Path) -> None:
    """The file is sparse: a million rows of room cost some pages."""
    assert Chains(tmp_path / "a", 0, 1 << 20).allocated_bytes < 1 << 16


def test_room_follows_rows(tmp_path: Path) -> None:
    """What was said before more rows came is not said again, whoever has inserted them."""
    chains, other = Chains(tmp_path / "a", 0, 1 << 16), Chains(tmp_path / "a", 0)
    empty = chains.allocated_bytes
    other.insert(np.arange(1 << 16, dtype=np.uint64))

    assert chains.allocated_bytes == os.stat(tmp_path / "a").st_blocks * 512 > empty + (1 << 18)


@pytest.mark.parametrize("keys", [0, 1, 100, 30_000])
@pytest.mark.parametrize("times", [1, 4])
def test_keys_are_estimated(keys: int, times: int, tmp_path: Path) -> None:
    """How many different hashes there are, to a few percent, however often each comes."""
    chains, distinct = (
        Chains(tmp_path / "a", 0),
        np.random.default_rng(0).integers(0, 1 << 63, keys, np.uint64),
    )
    chains.begin()
    chains.insert(np.tile(distinct * np.uint64(2), times))

    assert abs(chains.keys - keys) <= 0.05 * keys


def test_group_orders_by_segment() -> None:
    """Pairs are grouped by the segment of their row, in their old order within."""
    rows, other = np.array([9, 0, 4, 1, 8], np.int32), np.array([0, 1, 2, 3, 4], np.int32)
    ends = group(rows, np.array([0, 2, 2, 8, 10], np.int32), other, a := rows.copy(), b := other.copy())

    assert (a.tolist(), b.tolist(), ends.tolist()) == ([0, 1, 4, 9, 8], [1, 3, 2, 0, 4], [2, 2, 3, 5])


def test_no_rows_for_a_full_file(tmp_path: Path) -> None:
    """A process that opens it anew has nothing to reserve."""
    hashes = np.arange(1024, dtype=np.uint64) << np.uint64(50)
    Chains(tmp_path / "a", 0).insert(hashes)
    again = Chains(tmp_path / "a", 0)
    assert again.insert(hashes[:0]) == again.rows == 1024
