"""Measures how unevenly rows are distributed over units: DS of BS-Join, Equation 3."""

from collections.abc import Sequence
from math import sqrt
from statistics import median

from joinlib.route.hotspot import skew


def ds(rows: Sequence[int]) -> float | None:
    """DS = √(Σ (PSₓ - MEAN)² / (n - 1)) / MEAN over the rows PSₓ of n units; None if there are no rows.

    It is 0 for a single unit. A single hot unit of n makes it √n, its greatest value.
    """
    return skew(rows) if sum(rows) else None


def hottest(rows: Sequence[int]) -> float | None:
    """The fullest unit's share of all rows; None if there are no rows."""
    total = sum(rows)
    return max(rows) / total if total else None


def excess(rows: Sequence[int]) -> float | None:
    """The share of all rows by which units are fuller than the median one;
    None without rows, or for a single unit.

    Where each key has one unit, that is about the share of keys with more than a quarter of a unit's rows,
    without counting any key. Deviations that chance alone explains, up to three standard deviations
    (Poisson), count as even.
    """
    total = sum(rows)
    if not total or len(rows) < 2:
        return None
    usual = median(rows)
    most = usual + 3 * (1 + sqrt(usual))
    return sum(n - usual for n in rows if n > most) / total
