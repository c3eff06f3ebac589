"""DS of BS-Join, Equation 3."""

from math import isclose, sqrt
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.metric.skew import ds, excess, hottest
from joinlib.route.hash import spread
from joinlib.source.zipf import zipf

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


@given(ROWS, st.integers(0, 1000))
def test_what_one_unit_has_more_is_of_hot_keys(rows: list[int], more: int) -> None:
    """It lies between nothing and all, and is what was put on top of even rows, if that is no chance."""
    found = excess(rows)
    assert found is None if not sum(rows) else 0 <= (found or 0) <= 1
    put = 20 + more
    assert isclose(excess([9, 9, 9, 9 + put]) or 0, put / (36 + put))


def test_chance_is_even() -> None:
    """Few rows, and many on few units; of one unit nothing can be said."""
    draw = np.random.default_rng(0)
    for rows, units in ((10, 128), (1000, 32), (65_536, 32)):
        assert (excess(draw.multinomial(rows, [1 / units] * units).tolist()) or 0) < 0.02
    assert (excess([5]), excess([]), excess([0, 0])) == (None, None, None)
    assert excess([0] * 127 + [300]) == 1


@pytest.mark.parametrize(("exponent", "units"), [(1.2, 32), (1.2, 128), (1.04, 16)])
def test_the_excess_is_nearly_the_hot_keys_share(exponent: float, units: int) -> None:
    """Of keys that have more than a quarter of a unit's even share; no key was counted."""
    keys = zipf(np.random.default_rng(1).random(100_000), 20_000, exponent).astype(np.int64)
    homes = spread(20_000, 1)[keys] >> np.uint64(65 - units.bit_length())
    rows, each = np.bincount(homes.astype(np.int64), minlength=units), np.bincount(keys)
    hot = each[each > len(keys) / units / 4].sum() / len(keys)
    assert excess(rows.tolist()) == pytest.approx(hot, abs=0.1)
