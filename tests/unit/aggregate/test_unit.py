"""A unit of groups over batches: what comes out of it, what it keeps, what it writes."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.aggregate.finish import finished
from joinlib.aggregate.groups import Groups, of_partials
from joinlib.aggregate.partial import Partials, merge, partial
from joinlib.aggregate.unit import Block, GroupUnit
from joinlib.expr import ref
from joinlib.expr.compare import compare
from joinlib.expr.nodes import constant
from joinlib.expr.time import truncate
from joinlib.model.grouping import AggregateCall, Grouping, GroupKey, Release
from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.tuning import Tuning
from joinlib.state.manifest import Manifest, decode, empty
from tests.unit.aggregate.groups import Row, batch, counted, defined, grouping, rows, stage, tick

MINUTE = 60_000_000
TUNING = Tuning(file_bytes=1, retain_batches=1)
TIME = pa.timestamp("us", "UTC")


class Unit:
    """A unit that is restored from its manifest before each batch."""

    def __init__(self, folder: Path, asked: Grouping) -> None:
        self.folder, self.asked, self.number, self.manifest = folder, asked, 0, empty(1, 1)

    def batch(self, *parts: pa.RecordBatch, watermark: int = NEVER) -> list[pa.RecordBatch]:
        numbered: list[Block] = []
        for at, part in enumerate(parts):
            partials = Partials(self.asked)
            partials.add(part)
            numbered += [(at, number, block) for number, block in partials.blocks()]
        before = decode(self.manifest.encode())
        run = GroupUnit(stage(self.asked), 0, self.folder, TUNING, before)
        out = list(run.run(self.number, numbered, [tick(watermark)]))
        self.number, self.manifest = self.number + 1, run.manifest
        return out

    @property
    def files(self) -> set[str]:
        return {f.name for f in self.folder.iterdir()}


@settings(max_examples=20)
@given(st.lists(st.lists(rows, max_size=3), max_size=4), st.integers(0, 2))
def test_groups_come_out_when_the_inputs_are_closed(cuts: list[list[list[Row]]], keys: int) -> None:
    """Once, whatever the cut into batches and units; the state is empty then."""
    with TemporaryDirectory() as folder:
        unit = Unit(Path(folder), grouping(keys))
        early = [out for parts in cuts for out in unit.batch(*map(batch, parts))]
        late = unit.batch(watermark=ALWAYS)
        again = unit.batch(watermark=ALWAYS)

    assert counted(early) == counted(again) == Counter()
    assert counted(late) == defined([r for parts in cuts for part in parts for r in part], keys)
    assert unit.manifest.sides[0].rows == 0


@settings(max_examples=20)
@given(st.lists(st.lists(rows, max_size=3), min_size=1, max_size=4), st.integers(0, 2))
def test_the_changelog_leads_to_the_result_of_each_batch(cuts: list[list[list[Row]]], keys: int) -> None:
    """The last row of each group is its value; a batch has one row for a group at most, and none that says nothing new."""
    asked = grouping(keys, changelog=True)
    asked = replace(asked, having=compare("<", ref("$a", pa.int64()), constant(pa.scalar(3), "3")))
    seen: list[Row] = []
    table: dict[Row, Row] = {}
    with TemporaryDirectory() as folder:
        unit = Unit(Path(folder), asked)
        for parts in cuts:
            changed = counted(unit.batch(*map(batch, parts)))
            assert all(count == 1 for count in changed.values())
            assert len({(*row[:keys], row[-1]) for row in changed}) == len(changed)
            for *row, weight in sorted(changed, key=lambda r: r[-1]):
                before = table.pop(tuple(row[:keys]), None)
                assert (before == tuple(row)) == (weight == -1)
                if weight == 1:
                    table[tuple(row[:keys])] = tuple(row)
            seen += [r for part in parts for r in part]
            assert Counter(table.values()) == Counter(r for r in defined(seen, keys) if r[keys] < 3)


@settings(max_examples=20)
@given(st.lists(st.lists(rows, max_size=2), max_size=5))
def test_distinct_rows_come_out_once_and_at_once(cuts: list[list[list[Row]]]) -> None:
    """SELECT DISTINCT is a grouping without aggregates."""
    asked = replace(grouping(2), calls=(), select=grouping(2).select[:2])
    seen: list[Row] = []
    out: Counter[Row] = Counter()
    with TemporaryDirectory() as folder:
        unit = Unit(Path(folder), asked)
        for parts in cuts:
            out += counted(unit.batch(*map(batch, parts)))
            seen += [r for part in parts for r in part]
            assert out == Counter(row[:2] for row in defined(seen, 2))


def hourly() -> Grouping:
    """count(*) by hour."""
    at = ref("o.at", TIME)
    release = Release("$g0", "o.at", TIME, truncate("hour", at))
    call = AggregateCall("$a0", "count", None, pa.null(), pa.int64(), "count(*)")
    select = (("h", ref("$g0", TIME)), ("n", ref("$a0", pa.int64())))
    return Grouping((GroupKey("$g0", TIME, "h"),), (call,), None, select, release=release)


def hours(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array([v and v * 60 * MINUTE for v in values], pa.int64()).cast(TIME)], ["$g0"]
    )


def test_an_hour_comes_out_once_no_earlier_row_can_come(tmp_path: Path) -> None:
    """A group is final when its key is below that of the lowest time to come; one without a time waits for the end."""
    unit = Unit(tmp_path, hourly())

    def out(*values: int | None, watermark: int) -> dict[Any, int]:
        rows = [r for b in unit.batch(hours(*values), watermark=watermark) for r in b.to_pylist()]
        return {r["h"] and int(r["h"].timestamp()) // 3600: r["n"] for r in rows}

    assert out(1, 1, 2, None, watermark=NEVER) == {}
    assert out(2, 3, watermark=119 * MINUTE) == {}
    assert out(2, 4, watermark=120 * MINUTE) == {1: 2}
    assert out(watermark=120 * MINUTE) == {}
    assert out(4, 4, watermark=100 * MINUTE) == {}
    assert out(4, watermark=250 * MINUTE) == {2: 3, 3: 1}
    assert out(watermark=ALWAYS) == {4: 4, None: 1}


def test_state_follows_the_groups_not_the_batches(tmp_path: Path) -> None:
    """After many batches: few segments, each less than half of the one before, and no file that the manifest does not name."""
    asked = grouping(1, changelog=True)
    unit = Unit(tmp_path, replace(asked, calls=asked.calls[:1], select=asked.select[:2]))
    for at in range(80):
        some: list[Row] = [(f"k{(at * 7 + i) % 40}", None, 1, None, None, None) for i in range(at % 4)]
        unit.batch(batch(some))

    sizes = [s.rows for s in unit.manifest.sides[0].segments]
    assert all(a >= 2 * b for a, b in pairwise(sizes))
    assert sum(sizes) < 80
    unit.batch()
    unit.batch()
    assert unit.files == unit.manifest.names
    assert len(unit.files) <= 8


def test_a_batch_that_runs_again_writes_the_same(tmp_path: Path) -> None:
    """From one manifest: the same rows, the same bytes, whatever an attempt that died has left."""
    unit = Unit(tmp_path, grouping(1, changelog=True))
    unit.batch(batch([("a", None, 1, None, None, None), ("b", None, 2, None, None, None)]))
    before: Manifest = unit.manifest
    once = unit.batch(batch([("a", None, 5, None, None, None)])), unit.manifest
    unit.manifest, unit.number = before, 1
    again = unit.batch(batch([("a", None, 5, None, None, None)])), unit.manifest

    assert once == again


@settings(max_examples=20)
@given(rows, rows)
def test_equal_hashes_are_not_equal_groups(stored: list[Row], sought: list[Row]) -> None:
    """What is found by hash may hold other groups; merging tells them apart."""
    asked = grouping(2)
    with TemporaryDirectory() as folder:
        groups = Groups(Path(folder), of_partials(asked), ())
        groups.add(partial(batch(stored), asked))
        groups.write(0, 1)
        part = partial(batch(sought), asked)
        found = groups.stored(part)
        merged = merge([part, *found], asked)

    keys = {r[:2] for r in defined(sought, 2)}
    assert counted([finished(merged.slice(0, part.num_rows), asked)]) == Counter(
        {row: n for row, n in defined(sought + stored, 2).items() if row[:2] in keys}
    )
