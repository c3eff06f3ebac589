"""Computes the memory load of the executors and how many are needed:

    τ = Σ MLV(pᵢ) / (k·C)          memory load of k executors that may hold C bytes each
    Δ = (τ/Ψ - 1)·k                (7) executors to add, or to remove, so that the load becomes Ψ

See section 5 of BiStream.
"""

from dataclasses import dataclass
from math import ceil, isfinite

ROUNDING = 1e-9  # rounding error of a sum of floats


@dataclass(frozen=True)
class Load:
    """Complete metrics of one moment: sums over all executors."""

    executors: int  # k
    held: float  # Σ MLV: bytes of state that they hold
    capacity: float  # k·C: bytes that they may hold
    lag: float | None = None  # rows that are available but not read; None: not known
    rate: float | None = None  # rows read per second
    arrival: float | None = None  # rows that come per second
    true_rate: float | None = None  # rows read per second of busy time, while a batch runs

    def __post_init__(self) -> None:
        """Assert that no missing value was passed as a number."""
        assert self.executors > 0
        assert isfinite(self.held) and self.held >= 0
        assert isfinite(self.capacity) and self.capacity > 0

    def behind(self, seconds: float) -> bool:
        """Whether more rows wait than are read in this many seconds; True if that is not known."""
        rate = self.rate if self.true_rate is None else self.true_rate
        if self.lag is None or rate is None:
            return True
        return self.lag > rate * seconds


@dataclass(frozen=True)
class Observed:
    """An observation of the cluster at one moment."""

    ready: int | None = None  # executors that work; None: no driver reports them
    leaving: int = 0  # executors leaving
    load: Load | None = None  # None: not complete, or not fresh
    why: str = ""  # why there is no load


def tau(load: Load) -> float:
    """The memory load of all executors together."""
    return load.held / load.capacity


def fitting(load: Load, target: float) -> int:
    """Return k + Δ, rounded up: with that many executors the load is at most `target`, Ψ."""
    k = load.executors
    delta = (tau(load) / target - 1) * k
    return max(1, ceil(k + delta - ROUNDING))
