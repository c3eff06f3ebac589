"""Forecasts figures of the next cycle by exponential smoothing of second order (dpPick, section 4.3).

    level_t = A x_t + (1 - A) (level + φ slope)        slope_t = B (level_t - level) + (1 - B) φ slope
    forecast = level_t + φ slope_t

φ = 1 is Holt's linear trend (for μ and κ), φ < 1 the damped one (for γ, which cannot grow without limit). The
recurrence keeps no history: a history of L cycles, the paper's sequence, has the mean age (L - 1) / 2, and the
levels of this recurrence have the same with A = 2 / (L + 1).
"""

from dataclasses import dataclass

HISTORY = 3  # L, cycles
B = 0.3
DAMPING = 0.8  # φ of match rates
LINEAR = 1.0


@dataclass(frozen=True)
class Trend:
    """A smoothed figure: its level, and its change per cycle."""

    level: float
    slope: float = 0.0

    def after(self, value: float, damping: float = LINEAR, history: int = HISTORY) -> "Trend":
        """Return the trend one cycle later, in which the figure was `value`."""
        carried, a = damping * self.slope, newest(history)
        level = a * value + (1 - a) * (self.level + carried)
        return Trend(level, B * (level - self.level) + (1 - B) * carried)

    def ahead(self, damping: float = LINEAR) -> float:
        """Return the forecast for the next cycle."""
        return self.level + damping * self.slope


def newest(history: int) -> float:
    """Return A, the weight of the cycle that just ended."""
    return 2 / (history + 1)


def followed(
    before: Trend | None, value: float | None, damping: float = LINEAR, history: int | None = HISTORY
) -> Trend | None:
    """Return the trend after a cycle; `value` None means that nothing was observed.

    history: cycles; None: what was before the last one counts for nothing.
    """
    if value is None:
        return before
    return Trend(value) if before is None or history is None else before.after(value, damping, history)
