"""Aggregates of values at the edges: one argument twice, doubles whose sums or squares do not fit, NaN beside a constant."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from joinlib.errors import SpecError
from tests.unit.expr.aggregates import aggregate

TABLE = pa.table(
    {
        "x": pa.array([1, 2, 2, None], pa.int64()),
        "big": pa.array([1.5e308, 1.5e308, -1.5e308, 1.0]),
        "more": pa.array([1.5e308, 1.5e308, 1.0, 1.0]),
        "tiny": pa.array([1e-100, 2e-100, 3e-100, 4e-100]),
        "odd": pa.array([math.nan, 1.0, -math.inf, 2.0]),
        "one": pa.array([3.0, 3.0, 3.0, 3.0]),
        "m": pa.array([Decimal("99999999999999999999999999999999.999999")] * 4, pa.decimal128(38, 6)),
    }
)
VALUES = [
    ("corr(x, x)", 1.0),
    ("covar_pop(x, x)", 2 / 9),
    ("regr_count(x, x)", 3),
    ("count(DISTINCT x, x)", 2),
    ("variance(big)", math.inf),
    ("stddev_pop(more)", math.inf),
    ("covar_pop(more, x)", -5e307 / 3),
    ("corr(tiny, tiny)", 1.0),
    ("regr_r2(tiny, tiny)", 1.0),
    ("regr_intercept(odd, one)", None),
    ("regr_slope(odd, one)", None),
    ("regr_sxx(odd, one)", 0.0),
    ("regr_syy(one, odd)", 0.0),
    ("regr_sxx(one, odd)", math.nan),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=[text for text, _ in VALUES])
def test_value(text: str, expected: Any) -> None:
    found = aggregate(text, TABLE)[1][0].as_py()

    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("text", ["skewness(big)", "kurtosis(more)", "corr(big, more)"])
def test_what_has_no_finite_moments_is_nan(text: str) -> None:
    assert math.isnan(aggregate(text, TABLE)[1][0].as_py())


def test_a_mean_with_too_many_digits_is_told() -> None:
    with pytest.raises(
        SpecError, match="is too large for DECIMAL\\(38,10\\); CAST its argument to a wider type"
    ):
        aggregate("avg(m)", TABLE)
