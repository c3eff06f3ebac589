"""Rows as values: equal rows have equal hashes, and the sum of changes is that of their weights."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.model.inputs import WEIGHT
from joinlib.route import content
from joinlib.route.content import consolidated, content_hash, same, values, weights

SCHEMA = pa.schema(
    [("$hash", pa.uint64()), ("f", pa.float64()), ("s", pa.string()), ("n", pa.int64()), (WEIGHT, pa.int64())]
)
ROWS = st.tuples(
    st.sampled_from([0.0, -0.0, float("nan"), 1.5, None]),
    st.sampled_from(["", "a", None]),
    st.sampled_from([0, 1, None]),
    st.sampled_from([-2, -1, 1, 2]),
)


def batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [[0] * len(rows), *(list(c) for c in zip(*rows))] if rows else [[]] * len(SCHEMA)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def alike(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple("NaN" if v != v else v for v in row)


def summed(rows: pa.RecordBatch) -> dict[tuple[object, ...], int]:
    total: Counter[tuple[object, ...]] = Counter()
    for row in zip(*(rows.column(n).to_pylist() for n in SCHEMA.names[1:]), strict=True):
        total[alike(row[:-1])] += row[-1]
    return {row: n for row, n in total.items() if n}


@given(st.lists(ROWS, max_size=30))
def test_consolidated_is_the_sum(rows: list[tuple[object, ...]]) -> None:
    """No row comes twice with different signs, none has weight 0, and deletions come first."""
    given_rows = batch(rows)
    found = consolidated(given_rows)
    assert summed(found) == summed(given_rows)
    amounts = weights(found)
    assert not (amounts == 0).any()
    if (weights(given_rows) < 0).any():
        assert (np.diff(np.sign(amounts)) >= 0).all()
        assert summed(consolidated(given_rows, ordered=False)) == summed(given_rows)
        assert summed(consolidated(given_rows.select(given_rows.schema.names[1:]))) == summed(given_rows)
        gone = {alike(r) for r in zip(*(c.to_pylist() for c in found.columns[1:-1])) if r}
        assert len(gone) >= len(summed(found))


def test_equal_rows_that_lie_apart() -> None:
    """Only where rows have a place by their hash, which is then part of them."""
    rows = pa.record_batch([pa.array([1, 2], pa.uint64()), pa.array([-1, -1])], ["$hash", WEIGHT])

    assert weights(consolidated(rows)).tolist() == [-2]
    assert weights(consolidated(rows, placed=True)).tolist() == [-1, -1]


@given(st.lists(ROWS, min_size=1, max_size=30))
def test_rows_of_equal_hashes_that_differ(rows: list[tuple[object, ...]]) -> None:
    """A hash that tells nothing apart changes the cost only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "content_hash", lambda _, count: np.zeros(count, np.uint64))
        assert summed(consolidated(batch(rows))) == summed(batch(rows))


@given(st.lists(ROWS, max_size=20), st.lists(ROWS, max_size=20))
def test_equal_rows_have_equal_hashes(
    left: list[tuple[object, ...]], right: list[tuple[object, ...]]
) -> None:
    """Also where one of them lies in a slice, with other bytes below its NULLs."""
    rows = min(len(left), len(right))
    one, two = batch([*right, *left]).slice(len(right), rows), batch(right).slice(0, rows)
    equal = same(values(one), values(two), rows)
    assert equal.tolist() == [alike(a[:-1]) == alike(b[:-1]) for a, b in zip(left, right)]
    hashes = content_hash(values(one), rows), content_hash(values(two), rows)
    assert (hashes[0] == hashes[1])[equal].all()


def test_rows_that_only_come_are_not_copied() -> None:
    """Nothing can cancel."""
    rows = batch([(1.5, "a", 1, 1), (1.5, "a", 1, 1)])
    assert consolidated(rows) is rows


def test_columns_of_nothing_but_null_are_equal() -> None:
    kinds = pa.schema([("$hash", pa.uint64()), ("none", pa.null()), (WEIGHT, pa.int64())])
    rows = pa.record_batch([[0, 0, 0], [None, None, None], [1, 1, -1]], kinds)
    assert weights(consolidated(rows)).tolist() == [1]
