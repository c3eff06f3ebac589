"""DS of BS-Join, Equation 3."""

from math import isclose, sqrt
from statistics import mean, stdev

from hypothesis import given
from hypothesis import strategies as st

from joinlib.metric.skew import ds, hottest

ROWS = st.lists(st.integers(0, 9), min_size=2, max_size=8)


@given(ROWS)
def test_is_the_relative_standard_deviation(rows: list[int]) -> None:
    """Of a sample: divided by n - 1, as in the paper."""
    found = ds(rows)
    assert found is None if not sum(rows) else isclose(found or 0, stdev(rows) / mean(rows), abs_tol=1e-12)


@given(ROWS, st.integers(2, 5))
def test_does_not_depend_on_how_many_rows_there_are(rows: list[int], factor: int) -> None:
    """The mean in the denominator takes the amount out; DS lies between 0 and √n."""
    found, larger = ds(rows), ds([factor * r for r in rows])
    assert (found is None) == (larger is None)
    assert found is None or (
        isclose(found, larger or 0, abs_tol=1e-9) and 0 <= found <= sqrt(len(rows)) + 1e-9
    )


def test_ends_of_the_scale() -> None:
    """Even is 0, all in one unit √n; of one unit, and of no rows, little can be said."""
    assert ds([3, 3, 3]) == 0
    assert isclose(ds([8, 0, 0, 0]) or 0, 2)
    assert (ds([5]), ds([]), ds([0, 0])) == (0, None, None)
    assert (hottest([1, 3]), hottest([0])) == (0.75, None)
