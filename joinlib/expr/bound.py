"""Bounds on how far apart in time two rows may be."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """low <= right - left <= high, in microseconds, between two event-time columns; None means unbounded."""

    left: str  # "o.ordered_at"
    right: str  # "s.shipped_at"
    low_us: int | None
    high_us: int | None

    @property
    def turned(self) -> "Bound":
        """The same bound, expressed for left - right."""
        low = None if self.high_us is None else -self.high_us
        high = None if self.low_us is None else -self.low_us
        return Bound(self.right, self.left, low, high)
