"""Rows of a run come back in the order in which they are named, from however many segments."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.join.rows import Nulls, Picked, Stored, Tuples, flat
from joinlib.route.config import HASH
from joinlib.state.manifest import Run, Segment

SCHEMA = pa.schema([(HASH, pa.uint64()), ("a.v", pa.int64())])


class Live:
    """As much of a run as `Stored` reads."""

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
