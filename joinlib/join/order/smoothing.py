"""Forecasts figures of the next cycle by exponential smoothing of second order (dpPick, section 4.3).

    level_t = A x_t + (1 - A) (level + φ slope)        slope_t = B (level_t - level) + (1 - B) φ slope
    forecast = level_t + φ slope_t

φ = 1 is Holt's linear trend (for μ and κ), φ < 1 the damped one (for γ, which cannot grow without limit). The
recurrence needs no history: it equals the paper's sequence with an unlimited length L.
"""

from dataclasses import dataclass

A, B = 0.5, 0.3
DAMPING = 0.8  # φ of match rates
LINEAR = 1.0


@dataclass(frozen=True)
class Trend:
    """A smoothed figure: its level, and its change per cycle."""

    level: float
    slope: float = 0.0

    def after(self, value: float, damping: float = LINEAR) -> "Trend":
        """Return the trend one cycle later, in which the figure was `value`."""
        carried = damping * self.slope
        level = A * value + (1 - A) * (self.level + carried)
        return Trend(level, B * (level - self.level) + (1 - B) * carried)

    def ahead(self, damping: float = LINEAR) -> float:
        """Return the forecast for the next cycle."""
        return self.level + damping * self.slope


def followed(
    before: Trend | None, value: float | None, damping: float = LINEAR, smooth: bool = True
) -> Trend | None:
    """Return the trend after a cycle; `value` None means that nothing was observed."""
    if value is None:
        return before
    return Trend(value) if before is None or not smooth else before.after(value, damping)
