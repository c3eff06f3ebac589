"""The scaling settings of a job, from its spec and defaults."""

from dataclasses import dataclass
from math import ceil

from joinlib.spec.model import Executors, Spec


@dataclass(frozen=True)
class Policy:
    """Thresholds, limits and times; times are in seconds."""

    min: int = 1
    max: int = 1
    pinned: int | None = None  # spec.executors.instances: a fixed number of executors
    high: float = 0.8  # T_h of the paper
    low: float = 0.3  # T_l
    target: float = 0.6  # Ψ
    votes: int = 3
    period_s: float = 60.0
    # Pause after a change: units still spread, and a cold executor makes a slow batch.
    cool_s: float = 120.0
    patience_s: float = 300.0  # for executors to come or go
    grow: float = 4.0  # a step multiplies the executors by at most this
    shrink: float = 0.5  # and by no less than this

    def within(self, executors: int) -> int:
        """Clamp a number of executors to the limits of the spec."""
        return min(max(executors, self.min), self.max)

    def reachable(self, wanted: int, now: int) -> int:
        """Return where one step from `now` towards `wanted` may lead."""
        return self.within(min(max(wanted, ceil(now * self.shrink)), int(now * self.grow)))


def of_spec(spec: Spec) -> Policy:
    """Return the policy of a spec."""
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
