"""Keys 0 .. keys-1 with bounded Zipf popularity: key k has probability ~ (k + 1) ** -skew; skew 0 is uniform.

Drawn by the inverse of the distribution: exact, by table, for the first TABLE keys; beyond them the sum is
replaced by an integral, which there is accurate to a millionth. So any number of keys costs at most 8 MiB
and a binary search per row.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

TABLE = 1 << 20

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


def zipf(uniform: Floats, keys: int, skew: float) -> Longs:
    """Return a key for each number in [0, 1). Monotone."""
    table = _cumulated(min(keys, TABLE), skew)
    head = float(table[-1])
    mass = uniform * (
        head + (_integral(keys + 0.5, skew) - _integral(TABLE + 0.5, skew) if keys > TABLE else 0.0)
    )
    drawn = np.searchsorted(table, mass, side="right").astype(np.int64)
    beyond = mass >= head
    if keys > TABLE and beyond.any():
        ranks = _inverse(mass[beyond] - head + _integral(TABLE + 0.5, skew), skew)
        drawn[beyond] = np.maximum(np.rint(ranks).astype(np.int64) - 1, TABLE)
    return np.minimum(drawn, keys - 1)


@lru_cache(maxsize=2)
def _cumulated(keys: int, skew: float) -> Floats:
    return np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -skew)


def _integral(x: float, skew: float) -> float:
    """Return the integral of t ** -skew from 1 to x."""
    return float(np.log(x) if skew == 1 else (x ** (1 - skew) - 1) / (1 - skew))


def _inverse(area: Floats, skew: float) -> Floats:
    if skew == 1:
        return np.exp(area)
    inverse: Floats = (area * (1 - skew) + 1) ** (1 / (1 - skew))
    return inverse
