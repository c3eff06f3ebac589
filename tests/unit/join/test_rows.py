"""Rows of a run come back in the order in which they are named, from however many segments."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.join.rows import Nulls, Picked, Stored, Tuples, flat
from joinlib.model.inputs import HASH
from joinlib.state.manifest import Run, Segment

SCHEMA = pa.schema([(HASH, pa.uint64()), ("a.v", pa.int64())])


class Live:
    """As much of a run as `Stored` reads."""

    scattered = False

    def __init__(self, sizes: list[int]) -> None:
        ends = np.cumsum([0, *sizes])
        self.batches = [batch(range(a, b)) for a, b in itertools.pairwise(ends)]
        self.starts = ends.astype(np.int32)
        self.run = Run(0, False, tuple(Segment(str(i), n, 0, "", 1, 0) for i, n in enumerate(sizes)))


def batch(values: range) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.uint64()), pa.array(values, pa.int64())], SCHEMA)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_stored_rows_in_any_order(sizes: list[int], data: st.DataObject) -> None:
    """Ungrouped, repeated, none: the column is that of the named rows; `take` and `filter` choose among them."""
    live = Live(sizes)
    numbers = np.array(data.draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=12)), np.int32)
    stored = Stored(live, numbers)  # type: ignore[arg-type]
    kept = np.array(
        sorted(data.draw(st.sets(st.integers(0, max(len(numbers) - 1, 0)), max_size=len(numbers)))), np.int64
    )

    assert flat(stored.column("a.v")).to_pylist() == numbers.tolist()
    assert flat(stored.take(kept[::-1]).column("a.v")).to_pylist() == numbers[kept[::-1]].tolist()
    grouped = np.sort(numbers)
    ends = np.searchsorted(grouped, live.starts[1:])
    chosen = Stored(live, grouped, ends).filter(kept)  # type: ignore[arg-type]
    assert flat(chosen.column("a.v")).to_pylist() == grouped[kept].tolist()


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3), st.data())
def test_stored_rows_of_several_runs(sizes: list[list[int]], data: st.DataObject) -> None:
    """Together they are the rows of the first, then those of the next, grouped by segment or not; few of them too."""
    parts, values = [], []
    for number, run in enumerate(sizes):
        live = Live(run)
        numbers = np.array(data.draw(st.lists(st.integers(0, sum(run) - 1), max_size=5)), np.int32)
        grouped = data.draw(st.booleans())
        numbers = np.sort(numbers) if grouped else numbers
        live.batches = [
            pa.record_batch([b.column(0), pc.add(b.column(1), 100 * number)], SCHEMA) for b in live.batches
        ]
        parts.append(Stored(live, numbers, np.searchsorted(numbers, live.starts[1:]) if grouped else None))  # type: ignore[arg-type]
        values += (100 * number + numbers).tolist()
    kept = np.array(sorted(data.draw(st.sets(st.integers(0, max(len(values) - 1, 0)), max_size=len(values)))))

    stored = Stored.together(parts)
    fewer = stored.filter(kept.astype(np.int64))

    assert flat(stored.column("a.v")).to_pylist() == values
    assert flat(fewer.column("a.v")).to_pylist() == [values[i] for i in kept]
    assert (
        flat(Stored.together([fewer, stored]).column("a.v")).to_pylist() == [values[i] for i in kept] + values
    )


@given(st.lists(st.integers(0, 3), max_size=9), st.data())
def test_tuples_with_many_partners(positions: list[int], data: st.DataObject) -> None:
    """Few or many, a tuple's columns come with each of its partners, and again with each partner of those."""
    other = batch(range(10, 14)).rename_columns([HASH, "b.v"])
    tuples = Tuples(
        Picked(batch(range(4))), Stored(Live([1, 3]), np.arange(4, dtype=np.int32)), Picked(other)
    )  # type: ignore[arg-type]
    again = np.array(data.draw(st.lists(st.integers(0, 8), max_size=18)), np.int64)
    again = again[again < len(positions)]

    once = Tuples(*tuples.each(np.array(positions, np.int32)))
    twice = Tuples(*once.each(again), Picked(batch(range(len(again))).rename_columns([HASH, "c.v"])))

    assert flat(once.column("b.v")).to_pylist() == [10 + p for p in positions]
    assert twice.hashes().tolist() == [positions[i] for i in again]
    assert flat(twice.column("a.v")).to_pylist() == [positions[i] for i in again]
    assert flat(twice.take(again[:0]).column("b.v")).to_pylist() == []
    assert flat(twice.column("c.v")).to_pylist() == list(range(len(again)))


def test_tuples_find_columns_by_name() -> None:
    """A missing side is NULL, and its hash is never asked for."""
    tuples = Tuples(Nulls(SCHEMA, 3), Picked(batch(range(3)).rename_columns([HASH, "b.v"])))

    assert tuples.hashes().tolist() == [0, 1, 2]
    assert flat(tuples.column("a.v")).to_pylist() == [None] * 3
    assert flat(tuples.filter(np.array([True, False, True])).column("b.v")).to_pylist() == [0, 2]
    with pytest.raises(KeyError, match=r"c\.v"):
        tuples.column("c.v")


def test_nothing_is_copied_where_all_stay(tmp_path: Path) -> None:
    """A filter that keeps everything is free."""
    tuples = Tuples(Picked(batch(range(3))))

    assert tuples.filter(np.ones(3, np.bool_)) is tuples


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 5), st.data())
def test_slices_of_tuples(sizes: list[int], rows: int, data: st.DataObject) -> None:
    """In their order, whatever the parts are and whichever columns were read before; never more than asked for."""
    live = Live(sizes)
    numbers = np.sort(np.array(data.draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=12)), np.int32))
    ends = np.searchsorted(numbers, live.starts[1:])
    seen = batch(range(100, 100 + len(numbers))).rename_columns([HASH, "b.v"])
    tuples = Tuples(Picked(seen), Stored(live, numbers, ends))  # type: ignore[arg-type]
    if data.draw(st.booleans()):
        tuples.column("a.v")
    found = [
        (flat(s.column("b.v")).to_pylist(), flat(s.column("a.v")).to_pylist()) for s in tuples.slices(rows)
    ]

    assert [v for b, _ in found for v in b] == list(range(100, 100 + len(numbers)))
    assert [v for _, a in found for v in a] == numbers.tolist()
    assert all(len(b) == len(a) <= rows for b, a in found)
