"""Sums over frames: exact where numbers are, and doubles that forget what has left the frame."""

import math
import random
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.over import exact
from joinlib.over.codes import code, sort
from joinlib.over.frames import FrameEnds


@settings(max_examples=50)
@given(st.lists(st.integers(-(10**35), 10**35), min_size=1, max_size=9), st.integers(0, 2**20))
def test_sums_and_means_of_decimals_are_those_of_python(numbers: list[int], seed: int) -> None:
    """Also where every limb overflows, and with NULLs and carried sums."""
    dice = random.Random(seed)
    kind = pa.decimal128(38, 4)
    values = [Decimal(n).scaleb(-4) if dice.random() < 0.8 else None for n in numbers]
    low = [dice.randint(0, len(numbers)) for _ in numbers]
    high = [dice.randint(at, len(numbers)) for at in low]
    before = [Decimal(dice.randint(-(10**30), 10**30)).scaleb(-4) for _ in numbers]
    known = np.array([v is not None for v in values])

    found = exact.sums(
        pa.array(values, kind), known, FrameEnds(np.array(low), np.array(high)), pa.array(before, kind)
    )

    parts = [[v for v in values[a:b] if v is not None] for a, b in zip(low, high, strict=True)]
    totals = [_sum([start, *part]) for part, start in zip(parts, before, strict=True)]
    assert found.to_pylist() == totals
    counts = np.array([len(part) for part in parts])
    means = exact.mean(found, counts, pa.decimal128(38, 6)).to_pylist()
    for mean, total, count in zip(means, totals, counts.tolist(), strict=True):
        if count:
            with localcontext(prec=99):
                assert mean == (total / count).quantize(Decimal("0.000001"), ROUND_HALF_UP)
        else:
            assert mean is None


def _sum(numbers: list[Decimal]) -> Decimal:
    with localcontext(prec=99):
        return sum(numbers, Decimal(0))


def test_a_sum_of_more_than_38_digits_is_an_error() -> None:
    """And not a number that has wrapped around."""
    most = pa.array([Decimal(10**38 - 1)] * 3, pa.decimal128(38, 0))
    ends = FrameEnds(np.zeros(3, np.int64), np.array([1, 2, 3]))
    with pytest.raises(OverflowError):
        exact.sums(most, np.ones(3, bool), ends)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, None, -(2**63), 2**63 - 1, 0]),
        pa.array([1.5, None, math.nan, -0.0, -math.inf]),
        pa.array(["b", None, "", "ä", "ba"]),
        pa.array([Decimal("1.10"), None, Decimal(-9), Decimal(10), Decimal("1.09")], pa.decimal128(38, 2)),
        pa.array([True, None, False, None]),
        pa.array([None, None], pa.timestamp("us", "UTC")),
    ],
)
def test_codes_sort_as_values_do(column: pa.Array, descending: bool, nulls_first: bool) -> None:
    """NaN is the greatest, and NULLs are where they were asked to be."""
    order = sort([code(column, descending, nulls_first)], len(column)).rows
    found = column.take(pa.array(order)).to_pylist()
    values = [v for v in column.to_pylist() if v is not None]
    values.sort(
        key=lambda v: (isinstance(v, float) and math.isnan(v), 0 if v != v else v), reverse=descending
    )
    missing = [None] * column.null_count
    assert str(found) == str([*missing, *values] if nulls_first else [*values, *missing])


@pytest.mark.parametrize(
    "column", [pa.array([[1, 2], [1], None, [1, 2], []]), pa.array([{"a": 1}, None, {"a": 2}, {"a": 1}])]
)
def test_codes_of_lists_are_equal_where_they_are(column: pa.Array) -> None:
    """They break ties only."""
    found = code(column).values.tolist()
    values = [str(v) for v in column.to_pylist()]
    assert [a == b for a in found for b in found] == [a == b for a in values for b in values]
