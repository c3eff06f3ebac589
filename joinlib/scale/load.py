"""What do the executors say, and how many would do? Section 5 of BiStream.

τ = Σ MLV(pᵢ) / (k·C)          memory load of k executors that may hold C bytes each
Δ = (τ/Ψ - 1)·k                (7) executors to add, or to remove, so that the load becomes Ψ
"""

from dataclasses import dataclass
from math import ceil, isfinite

_ROUNDING = 1e-9  # what adding floats up may be off


@dataclass(frozen=True)
class Load:
    """Complete figures of one moment: sums over every executor that is there."""

    executors: int  # k
    held: float  # Σ MLV: bytes of state that they hold
    capacity: float  # k·C: bytes that they may hold
    lag: float | None = None  # rows that are there but not read; None: not known
    rate: float | None = None  # rows read a second

    def __post_init__(self) -> None:
        """A figure that is missing must not look like one."""
        assert self.executors > 0
        assert isfinite(self.held) and self.held >= 0
        assert isfinite(self.capacity) and self.capacity > 0

    def behind(self, seconds: float) -> bool:
        """Is there more to read than is read in so many seconds? Also if that is not known."""
        if self.lag is None or self.rate is None:
            return True
        return self.lag > self.rate * seconds


@dataclass(frozen=True)
class Observed:
    """What can be seen at one moment."""

    ready: int | None = None  # executors that work; None: there is nobody to ask
    leaving: int = 0  # executors on their way out
    load: Load | None = None  # None: not complete, or not fresh
    why: str = ""  # it is not


def tau(load: Load) -> float:
    """The memory load of all executors together."""
    return load.held / load.capacity


def fitting(load: Load, target: float) -> int:
    """k + Δ, rounded up: with as many executors the load is at most Ψ."""
    k = load.executors
    delta = (tau(load) / target - 1) * k
    return max(1, ceil(k + delta - _ROUNDING))
