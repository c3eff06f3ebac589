"""How unevenly do rows fall on units? The measure DS of BS-Join, Equation 3."""

from collections.abc import Sequence

from joinlib.route.hotspot import skew


def ds(rows: Sequence[int]) -> float | None:
    """DS = √(Σ (PSₓ - MEAN)² / (n - 1)) / MEAN over the rows PSₓ of n units; None of no rows. One unit is even: 0.

    A single hot unit of n makes it √n, its greatest value.
    """
    return skew(rows) if sum(rows) else None


def hottest(rows: Sequence[int]) -> float | None:
    """The fullest unit's share of all rows; None of no rows."""
    total = sum(rows)
    return max(rows) / total if total else None
