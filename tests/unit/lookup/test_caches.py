"""LookupCache = no cache: whatever is kept, thrown out, expired or damaged, the answer is that of a nested loop over the table."""

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from joinlib import files
from joinlib.errors import NotReady
from joinlib.lookup.incremental import Answer, LookupCache, LookupFigures
from joinlib.lookup.version import Version, write, write_parts
from joinlib.route.hash import key_hash
from joinlib.route.split import split

_DAY = datetime(2026, 1, 1)  # noqa: DTZ001
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 2**62, 5],
    pa.int32(): [0, 1, -1, 2**30, 5],
    pa.bool_(): [True, False],
    pa.float64(): [0.0, -0.0, float("nan"), 1.5, float("inf")],
    pa.string(): ["", "a", "b", "ab", "ä"],
    pa.binary(): [b"", b"a", b"\x00"],
    pa.decimal128(10, 2): [Decimal("0.00"), Decimal("1.10"), Decimal("-3.33")],
    pa.date32(): [date(2026, 1, 1), date(1969, 12, 31)],
    pa.timestamp("us", "UTC"): [_DAY, _DAY + timedelta(microseconds=1)],
    pa.timestamp("us"): [_DAY, _DAY - timedelta(days=40_000)],
}
KINDS = list(VALUES)
Key = tuple[Any, ...]
Table = list[tuple[Key, str]]


def plain(value: Any) -> Any:
    """Equal if and only if SQL says so."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return "NaN" if value != value else value


def columns(kinds: list[pa.DataType], keys: list[Key]) -> list[pa.Array]:
    return [pa.array([k[i] for k in keys], kind) for i, kind in enumerate(kinds)]


def block(kinds: list[pa.DataType], table: Table, bits: int) -> pa.RecordBatch:
    """As a reader hands it over: hash, key columns, one more."""
    keys = columns(kinds, [k for k, _ in table])
    names = ["$hash", *(f"t.k{i}" for i in range(len(kinds))), "t.v"]
    return pa.record_batch(
        [pa.array(key_hash(keys, bits)), *keys, pa.array([v for _, v in table], pa.string())], names
    )


def nested(table: Table, keys: list[Key]) -> Counter[tuple[int, str]]:
    """(position, value) of all that match."""
    found = ((i, v) for i, key in enumerate(keys) for k, v in table if same(k, key))
    return Counter(found)


def same(one: Key, two: Key) -> bool:
    return [plain(v) for v in one] == [plain(v) for v in two]


def said(answer: Answer) -> Counter[tuple[int, str]]:
    return Counter(zip(answer.positions.tolist(), answer.rows.column("t.v").to_pylist(), strict=True))


def some_key(kinds: list[pa.DataType]) -> st.SearchStrategy[Key]:
    return st.tuples(*(st.sampled_from(VALUES[k]) for k in kinds))


some_kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=2)
some_bits = st.sampled_from([2, 64])


@given(st.data(), some_kinds, some_bits, st.sampled_from([1, 4]), st.booleans())
def test_a_version_is_a_nested_loop(
    data: st.DataObject, kinds: list[pa.DataType], bits: int, parts: int, joined: bool
) -> None:
    """Duplicates, keys that are not there, collisions, every type of a key, one and two columns; whole, in parts, and joined."""
    table = data.draw(st.lists(st.tuples(some_key(kinds), st.sampled_from("pqr")), max_size=12))
    keys = data.draw(st.lists(some_key(kinds), max_size=12))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "00000001"
        rows = block(kinds, table, bits)
        shares = dict(split(rows, parts))
        write_parts(path, [partial(shares.get, n, rows.slice(0, 0)) for n in range(parts)], whole=joined)
        assert len([*path.glob("*rows.arrow")]) == (1 if joined else parts)
        version = Version(path, [f"t.k{i}" for i in range(len(kinds))], bits)
        values = version.rows.column("t.v").to_pylist()
        found = Counter(
            (int(p), values[r])
            for positions, rows in version.probe(columns(kinds, keys))
            for p, r in zip(positions, rows, strict=True)
        )
    assert found == nested(table, keys)


def test_a_version_is_written_once(tmp_path: Path) -> None:
    """A second writer of the same version changes nothing; a damaged one is named, and takes no newer one's place."""
    kinds = [pa.int64()]
    write(tmp_path / "1", block(kinds, [((1,), "a")], 64))
    write(tmp_path / "1", block(kinds, [((2,), "b")], 64))
    assert Version(tmp_path / "1", ["t.k0"]).rows.column("t.v").to_pylist() == ["a"]
    assert [p.name for p in tmp_path.iterdir()] == ["1"]
    (tmp_path / "1" / "rows.arrow").write_bytes(b"")
    with pytest.raises(NotReady, match="run again, it is loaded again"):
        Version(tmp_path / "1", ["t.k0"])
    write(tmp_path / "1", block(kinds, [((2,), "b")], 64))
    assert Version(tmp_path / "1", ["t.k0"]).rows.column("t.v").to_pylist() == ["b"]


def test_a_version_is_on_the_disk_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files and what they are, then the folder that names it; one that need not survive costs nothing."""
    calls: list[Path] = []
    monkeypatch.setattr(
        files.os, "fsync", lambda handle: calls.append(Path(f"/proc/self/fd/{handle}").readlink())
    )
    rows = block([pa.int64()], [((1,), "a")], 64)
    write(tmp_path / "0", rows)
    assert calls == []
    write(tmp_path / "1", rows, synced=True)
    assert {c.name for c in calls[:-1]} >= {"rows.arrow", "starts.i32", "digests"}
    assert all(".1." in str(c) for c in calls[:-1]), "before the rename"
    assert calls[-1] == tmp_path


class CacheIsNoCache(RuleBasedStateMachine):
    """The table changes; what the cache says of a key is what the table said no longer ago than the key's expiry."""

    @initialize(
        kinds=some_kinds,
        bits=some_bits,
        budget=st.sampled_from([1, 9_000, 16_000, 40_000, 1 << 20]),
        data=st.data(),
    )
    def begin(self, kinds: list[pa.DataType], bits: int, budget: int, data: st.DataObject) -> None:
        self.folder = TemporaryDirectory()
        self.kinds, self.bits, self.budget = kinds, bits, budget
        self.table: Table = data.draw(
            st.lists(st.tuples(some_key(kinds), st.sampled_from(["", "q", "r" * 700])), max_size=12)
        )
        self.now = 0
        self.cache = self._another()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def _another(self) -> LookupCache:
        schema = block(self.kinds, [], self.bits).schema
        names = [f"t.k{i}" for i in range(len(self.kinds))]
        return LookupCache(Path(self.folder.name), schema, names, self.budget, self.bits)

    def _fetch(self, keys: list[pa.Array]) -> pa.RecordBatch:
        asked = list(zip(*(k.to_pylist() for k in keys), strict=True))
        for i, key in enumerate(asked):
            assert not any(same(key, other) for other in asked[:i]), "a key is asked for twice"
        self.asked += len(asked)
        # A database may say more than it was asked for: it thinks that other texts are equal, too.
        rows = [(k, v) for k, v in self.table if any(same(k, a) for a in asked) or len(v) == 1]
        return block(self.kinds, rows[::-1], self.bits)

    def _look(self, keys: list[Key], ttl: int) -> None:
        self.asked = 0
        answer = self.cache.lookup(columns(self.kinds, keys), self._fetch, self.now, self.now + ttl)
        assert said(answer) == nested(self.table, keys)

    @rule(data=st.data(), ttl=st.sampled_from([1, 3, 1000]), times=st.sampled_from([1, 1, 40]))
    def look(self, data: st.DataObject, ttl: int, times: int) -> None:
        keys = data.draw(st.lists(some_key(self.kinds), max_size=8))
        self._look(keys * times, ttl)

    @rule(data=st.data())
    def look_twice(self, data: st.DataObject) -> None:
        keys = data.draw(st.lists(some_key(self.kinds), min_size=1, max_size=4))
        self._look(keys, 1000)
        self._look(keys, 1000)
        if self.budget == 1 << 20:
            assert self.asked == 0, "what was just answered is not asked for again"

    @rule(steps=st.sampled_from([1, 5]))
    def time_goes_on(self, steps: int) -> None:
        self.now += steps

    @rule(data=st.data())
    def the_table_changes_and_all_is_void(self, data: st.DataObject) -> None:
        self.now += 1001
        self.table = data.draw(st.lists(st.tuples(some_key(self.kinds), st.sampled_from("pq")), max_size=12))

    @rule()
    def another_process(self) -> None:
        self.cache = self._another()

    @rule(data=st.data())
    def two_processes(self, data: st.DataObject) -> None:
        mine, self.cache = self.cache, self._another()
        self._look(data.draw(st.lists(some_key(self.kinds), max_size=4)), 1000)
        self.cache = mine

    @rule()
    def killed_in_a_change(self) -> None:
        self.cache.entries.begin()
        self.cache = self._another()

    @invariant()
    def whole(self) -> None:
        if hasattr(self, "cache"):
            self.cache._open()
            self.cache.check()
            least = LookupCache(
                Path(self.folder.name) / "least", block(self.kinds, [], 64).schema, ["t.k0"], 1
            ).bytes
            assert self.cache.bytes <= max(self.budget, least)
            files = [p for p in Path(self.folder.name).iterdir() if p.suffix in (".keys", ".rows")]
            kept = {str(n) for n in self.cache.entries.pieces[:, 0]}
            assert not files or {p.stem for p in files} >= kept


TestCacheIsNoCache = CacheIsNoCache.TestCase
TestCacheIsNoCache.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)


def test_memory_stays_within_the_budget(tmp_path: Path) -> None:
    """What the files of the cache take, measured after each of many batches of new keys, and the hot ones stay."""
    kinds, budget = [pa.int64()], 1 << 20
    cache = LookupCache(tmp_path, block(kinds, [], 64).schema, ["t.k0"], budget)
    asked: list[int] = []

    def fetch(keys: list[pa.Array]) -> pa.RecordBatch:
        asked.extend(keys[0].to_pylist())
        return block(kinds, [((k,), "x" * 40) for k in keys[0].to_pylist()], 64)

    for batch in range(40):
        hot, new = list(range(200)), list(range(1000 * (batch + 1), 1000 * (batch + 2)))
        cache.lookup([pa.array(hot + new)], fetch, batch)
        assert sum(f.stat().st_blocks * 512 for f in tmp_path.iterdir()) <= budget
    assert sum(k < 200 for k in asked) < 2 * 200
    assert cache.figures.queries == 40


def test_figures_say_why_a_query_was_needed(tmp_path: Path) -> None:
    """New keys and expired ones are told apart; an answer without rows is an answer; rows are those that are kept."""
    kinds = [pa.int64()]
    cache = LookupCache(tmp_path, block(kinds, [], 64).schema, ["t.k0"], 1 << 20)

    def fetch(keys: list[pa.Array]) -> pa.RecordBatch:
        return block(kinds, [((k,), "v") for k in keys[0].to_pylist() if k % 2], 64)

    cache.lookup([pa.array([1, 2, 1])], fetch, now=0, expiry=10)
    assert cache.figures == LookupFigures(probes=3, hits=0, expired=0, queries=1)
    cache.lookup([pa.array([1, 2, 3])], fetch, now=9, expiry=19)
    assert cache.figures == LookupFigures(probes=6, hits=2, expired=0, queries=2)
    assert cache.rows == 2
    assert 0 < cache.held < cache.bytes / 4, "the index is for many more"
    cache.lookup([pa.array([1, 2, 3, 5])], fetch, now=10, expiry=20)
    assert cache.figures == LookupFigures(probes=10, hits=3, expired=2, queries=3)
