"""Adds doubles exactly, so that what was added can be taken away without a trace.

Law: total(parts of the values, with weights) is the exact sum, rounded once, whatever was added and taken away
in between, and in which order.

A double is a whole number of 53 bits times a power of two. It is cut into limbs of 24 bits, each a whole number
times 2**(24 * code): at most four for a double, twelve for its square. Limbs of one code are added as int64, which
2**39 rows cannot overflow. So a sum is a bag of codes, with the sums of their limbs as weights; all doubles
together have a few hundred codes, and those of one column rarely more than six. NaN and the infinities are
counted, each under a code of its own.
"""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from joinlib.arrays import I64

_BITS = 24
_MASK = np.uint64((1 << _BITS) - 1)
COUNT, NAN, INFINITE, NEGATIVE = 20_000, 20_001, 20_002, 20_003  # codes of counts
SQUARES = 10_000  # codes of limbs of squares are that much higher
_COUNTS = COUNT - 1  # codes from here on are counts
F64 = npt.NDArray[np.float64]


def parts(values: F64, weights: I64, squares: bool) -> tuple[I64, I64, I64]:
    """Return the limbs of the values: index of the value, code, weight. O(values)."""
    finite = np.isfinite(values)
    at = np.arange(len(values))
    counts = np.select(
        [finite, np.isnan(values), values > 0], [COUNT, NAN, INFINITE], default=NEGATIVE
    ).astype(np.int64)
    found = [(at, counts, weights)]
    at, weights = at[finite], weights[finite]
    fraction, exponent = np.frexp(values[finite])
    whole = np.ldexp(fraction, 53).astype(np.int64)
    exponent = exponent.astype(np.int64) - 53
    found += _limbs(at, np.abs(whole).view(np.uint64), exponent, np.sign(whole) * weights, 0)
    if squares:
        high, low = (np.abs(whole) >> 27).view(np.uint64), (np.abs(whole) & (2**27 - 1)).view(np.uint64)
        two = 2 * exponent
        for product, more in ((low * low, 0), (np.uint64(2) * high * low, 27), (high * high, 54)):
            found += _limbs(at, product, two + more, weights, SQUARES)
    made = [np.concatenate(column) for column in zip(*found, strict=True)]
    some = made[2] != 0
    return made[0][some], made[1][some], made[2][some]


def _limbs(
    at: I64, whole: npt.NDArray[np.uint64], exponent: I64, weights: I64, first: int
) -> list[tuple[I64, I64, I64]]:
    """Cut whole * 2**exponent, of at most 55 bits, at multiples of 24 bits."""
    code, shift = exponent // _BITS, (exponent % _BITS).astype(np.uint64)
    cut = [(whole << shift) & _MASK]
    cut += [(whole >> (np.uint64(_BITS * k) - shift)) & _MASK for k in (1, 2, 3)]
    return [(at, first + code + k, limb.view(np.int64) * weights) for k, limb in enumerate(cut)]


class Sum:
    """The exact sum of a group's values, and of their squares, from its limbs."""

    def __init__(self, limbs: Mapping[int, int]) -> None:
        """`limbs`: weights by code."""
        self.special = self._special(limbs)
        self.count = sum(limbs.get(code, 0) for code in (COUNT, NAN, INFINITE, NEGATIVE))
        self._plain = {c: w for c, w in limbs.items() if c < SQUARES // 2}
        self._squares = {c - SQUARES: w for c, w in limbs.items() if SQUARES // 2 <= c < _COUNTS}

    def _special(self, limbs: Mapping[int, int]) -> float | None:
        """Return the sum if it is not a number of finite size; else None."""
        up, down = limbs.get(INFINITE, 0), limbs.get(NEGATIVE, 0)
        if limbs.get(NAN, 0) or (up and down):
            return math.nan
        return math.inf if up else -math.inf if down else None

    def total(self) -> float | None:
        """The sum; None of no values."""
        return self._over(1)

    def mean(self) -> float | None:
        return self._over(self.count)

    def variance(self, less: int) -> float | None:
        """The variance: squares of differences from the mean, over the count less `less`.

        None where there are not more than `less` values.
        """
        if self.count <= less:
            return None
        if self.special is not None:
            return math.nan
        low = min((*self._plain, 0))
        low_squares = min((*self._squares, 2 * low))
        total, squares = _added(self._plain, low), _added(self._squares, low_squares)
        total = total * total << _BITS * (2 * low - low_squares)
        return _divided(self.count * squares - total, self.count * (self.count - less), low_squares)

    def _over(self, divisor: int) -> float | None:
        if not self.count:
            return None
        if self.special is not None:
            return self.special
        low = min((*self._plain, 0))
        return _divided(_added(self._plain, low), divisor, low)


def _added(limbs: Mapping[int, int], low: int) -> int:
    return sum(weight << _BITS * (code - low) for code, weight in limbs.items())


def _divided(whole: int, divisor: int, code: int) -> float:
    """Return whole * 2**(24 * code) / divisor, rounded once; `code` is not positive."""
    try:
        return whole / (divisor << -_BITS * code)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
