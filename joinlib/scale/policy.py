"""What does a job's spec say about scaling, and what is said for it?"""

from dataclasses import dataclass
from math import ceil

from joinlib.spec.model import Executors, Spec


@dataclass(frozen=True)
class Policy:
    """Thresholds, limits and times. Seconds and executors."""

    min: int = 1
    max: int = 1
    pinned: int | None = None  # spec.executors.instances: somebody has said how many
    high: float = 0.8  # T_h of the paper
    low: float = 0.3  # T_l
    target: float = 0.6  # Ψ
    votes: int = 3
    period_s: float = 60.0
    cool_s: float = (
        120.0  # after a change nothing is decided: units spread, and a cold executor makes a slow batch
    )
    patience_s: float = 300.0  # for executors to come or go
    grow: float = 4.0  # a step leads to at most so many times the executors
    shrink: float = 0.5  # and to no fewer than this part of them

    def within(self, executors: int) -> int:
        """The nearest number that the spec allows."""
        return min(max(executors, self.min), self.max)

    def reachable(self, wanted: int, now: int) -> int:
        """What one step may lead to on the way from `now` to `wanted`."""
        return self.within(min(max(wanted, ceil(now * self.shrink)), int(now * self.grow)))


def of_spec(spec: Spec) -> Policy:
    """The policy that a spec asks for."""
    executors, scaling = spec.executors or Executors(), spec.scaling
    period_s = scaling.period_us / 1e6
    return Policy(
        min=executors.min,
        max=executors.max,
        pinned=executors.instances,
        high=scaling.high,
        low=scaling.low,
        target=scaling.target,
        votes=scaling.votes,
        period_s=period_s,
        cool_s=2 * period_s if scaling.cool_down_us is None else scaling.cool_down_us / 1e6,
        patience_s=scaling.patience_us / 1e6,
    )
