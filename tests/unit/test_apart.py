"""The rows for which a computation fails are found, and the rest is computed together."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.apart import apart


class Odd(Exception):
    """Raised for odd numbers."""


def halves(rows: pa.RecordBatch) -> list[int]:
    values = rows.column("x").to_pylist()
    if odd := [v for v in values if v % 2]:
        raise Odd(odd[0])
    return [v // 2 for v in values]


@given(st.lists(st.integers(0, 9)))
def test_exactly_the_rows_that_fail(values: list[int]) -> None:
    """Each with its own error; the others are computed in their order."""
    rows = pa.record_batch({"x": pa.array(values, pa.int64())})
    left, made, failing = apart(rows, halves, Odd)
    assert [(one.at, str(one.error)) for one in failing] == [
        (n, str(v)) for n, v in enumerate(values) if v % 2
    ]
    assert left.column("x").to_pylist() == [v for v in values if not v % 2]
    assert (made or []) == [v // 2 for v in values if not v % 2]


def test_other_errors_and_sound_rows_are_left_alone() -> None:
    """Nothing is computed twice where nothing fails."""
    calls = []
    apart(pa.record_batch({"x": [2, 4, 6]}), lambda rows: calls.append(rows.num_rows), Odd)
    assert calls == [3]
    with pytest.raises(Odd):
        apart(pa.record_batch({"x": [1]}), halves, KeyError)
