"""Aggregates that are computed from all values of a group, one group at a time.

Law: the same for the same values, however they came: sums are exact, and ties go to the least value.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_, xor
from typing import Any

Values = Sequence[Any]
Weights = Sequence[int]  # how often each value is there, at least once


def mode(values: Values, weights: Weights) -> Any:
    """Return the value that is there most often."""
    return values[max(range(len(values)), key=lambda i: (weights[i], -i))]


def bit_and(values: Values, weights: Weights) -> int:
    return reduce(and_, values)


def bit_or(values: Values, weights: Weights) -> int:
    return reduce(or_, values)


def bit_xor(values: Values, weights: Weights) -> int:
    return reduce(xor, (value for value, weight in zip(values, weights) if weight % 2), 0)


def nth(values: Values, weights: Weights, fraction: float) -> Any:
    """Return the first of the sorted values that this fraction of all does not exceed."""
    left = max(math.ceil(sum(weights) * fraction), 1)
    for value, weight in zip(values, weights):
        left -= weight
        if left <= 0:
            return value
    return values[-1]


def _moment(values: Values, weights: Weights, power: int) -> float:
    """Return the sum of powers of how far values are from their mean."""
    count = sum(weights)
    mean = math.fsum(v * w for v, w in zip(values, weights)) / count
    return math.fsum(w * (v - mean) ** power for v, w in zip(values, weights))


def skewness(values: Values, weights: Weights) -> float | None:
    square = _moment(values, weights, 2)
    return None if not square else math.sqrt(sum(weights)) * _moment(values, weights, 3) / square**1.5


def kurtosis(values: Values, weights: Weights) -> float | None:
    square = _moment(values, weights, 2)
    return None if not square else sum(weights) * _moment(values, weights, 4) / square**2 - 3.0


def _total(parts: list[float]) -> float:
    """Return the sum, exact where it is finite."""
    try:
        return math.fsum(parts)
    except (OverflowError, ValueError):  # too large, or infinities of both signs
        return sum(parts)


def _mean(values: Values, weights: Weights, count: int) -> float:
    total = _total([v * w for v, w in zip(values, weights)])
    if math.isfinite(total):
        return total / count
    return _total([v / count * w for v, w in zip(values, weights)])


def _sums(ys: Values, xs: Values, weights: Weights) -> tuple[int, float, float, float, float, float]:
    """Return count, means of y and x, and sums of squares: yy, xx, xy."""
    count = sum(weights)
    mean_y, mean_x = (_mean(of, weights, count) for of in (ys, xs))
    pairs = [(y - mean_y, x - mean_x, w) for y, x, w in zip(ys, xs, weights)]
    squares = (_total([w * a * b for a, b, w in of]) for of in (
        [(y, y, w) for y, _, w in pairs], [(x, x, w) for _, x, w in pairs], [(x, y, w) for y, x, w in pairs]))  # fmt: skip
    return (count, mean_y, mean_x, *squares)  # type: ignore[return-value]


def covar_pop(ys: Values, xs: Values, weights: Weights) -> float:
    count, _, _, _, _, xy = _sums(ys, xs, weights)
    return xy / count


def covar_samp(ys: Values, xs: Values, weights: Weights) -> float | None:
    count, _, _, _, _, xy = _sums(ys, xs, weights)
    return xy / (count - 1) if count > 1 else None


def corr(ys: Values, xs: Values, weights: Weights) -> float | None:
    _, _, _, yy, xx, xy = _sums(ys, xs, weights)
    if not xx or not yy:
        return None
    return xy / (math.sqrt(xx * yy) or math.sqrt(xx) * math.sqrt(yy))


def regr_sxx(ys: Values, xs: Values, weights: Weights) -> float:
    return _sums(ys, xs, weights)[4]


def regr_syy(ys: Values, xs: Values, weights: Weights) -> float:
    return _sums(ys, xs, weights)[3]


def regr_sxy(ys: Values, xs: Values, weights: Weights) -> float:
    return _sums(ys, xs, weights)[5]


def regr_slope(ys: Values, xs: Values, weights: Weights) -> float | None:
    _, _, _, _, xx, xy = _sums(ys, xs, weights)
    return xy / xx if xx else None


def regr_intercept(ys: Values, xs: Values, weights: Weights) -> float | None:
    _, mean_y, mean_x, _, xx, xy = _sums(ys, xs, weights)
    return mean_y - xy / xx * mean_x if xx else None


def regr_r2(ys: Values, xs: Values, weights: Weights) -> float | None:
    _, _, _, yy, xx, xy = _sums(ys, xs, weights)
    if not xx:
        return None
    return 1.0 if not yy else xy * xy / (xx * yy) if xx * yy else xy / xx * (xy / yy)


def finite(of: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with NaN where a value is NaN or endless."""

    def computed(*given: Any) -> Any:
        if not all(math.isfinite(value) for values in given[:-1] for value in values):
            return math.nan
        try:
            return of(*given)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan

    return computed


ONE: dict[str, Callable[..., Any]] = {
    "mode": mode,
    "bit_and": bit_and,
    "bit_or": bit_or,
    "bit_xor": bit_xor,
    "skewness": finite(skewness),
    "kurtosis": finite(kurtosis),
}
PAIRS: dict[str, Callable[..., Any]] = {
    of.__name__: of
    for of in (
        corr, covar_pop, covar_samp, regr_intercept, regr_r2, regr_slope, regr_sxx, regr_sxy,
        regr_syy,
    )
}  # fmt: skip
