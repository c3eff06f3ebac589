"""The scaling settings of a job, from its spec and defaults."""

from dataclasses import dataclass
from math import ceil

from joinlib.spec.model import Executors, Scaling, Spec


@dataclass(frozen=True)
class Policy:
    """Thresholds, limits and times; times are in seconds."""

    min: int
    max: int
    pinned: int | None  # spec.executors.instances: a fixed number of executors
    high: float  # T_h of the paper
    low: float  # T_l
    target: float  # Ψ
    votes: int
    period_s: float
    cool_s: float  # a pause after a change: units still spread, and a cold executor makes a slow batch
    patience_s: float  # for executors to come or go
    catch_up_s: float  # in which rows that wait should be read; 0: the lag does not count
    utilisation: float  # share of the time that executors should be busy
    advises: bool  # it only says what it would do
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
    return policy_of(spec.executors or Executors(), spec.scaling)


def policy_of(executors: Executors, scaling: Scaling) -> Policy:
    """Return the policy of these parts of a spec."""
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
        catch_up_s=scaling.lag.catch_up_us / 1e6,
        utilisation=scaling.lag.utilisation,
        advises=scaling.mode == "advise",
    )
