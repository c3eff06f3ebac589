"""What must scaling remember? One value, kept by whoever calls: in the status of the StreamJoin. Lost, it begins anew."""

from dataclasses import dataclass, replace
from typing import Literal

Phase = Literal["Idle", "Growing", "Shrinking"]
Direction = Literal["out", "in"]
Verdict = Literal[
    "Steady",  # between the thresholds
    "Voting",  # over or under one, but not for long enough
    "ScaleOut",
    "ScaleIn",
    "Settled",  # what was wanted is there
    "RolledBack",  # it did not come in time
    "Waiting",  # for executors to come or go
    "Cooling",  # a change was just made
    "CatchingUp",  # executors are not removed while rows wait
    "AtLimit",  # more, or fewer, would be better, but may not be
    "Limits",  # the spec's limits have changed
    "Blind",  # figures are missing
    "Pinned",  # somebody has said how many
]
DECISIONS = 20  # that are remembered
_QUIET = {"Steady", "Waiting", "Cooling", "CatchingUp", "AtLimit", "Blind", "Pinned"}


@dataclass(frozen=True)
class Decision:
    """What came of a period, and of what."""

    at: float  # seconds since 1970
    verdict: Verdict
    wanted: int  # executors, afterwards
    ready: int | None = None
    load: float | None = None  # τ
    votes: int = 0
    reason: str = ""
    times: int = 1  # it was the same so many periods in a row

    def again(self, other: "Decision") -> bool:
        """Is `other` no news after this one?"""
        return self.verdict in _QUIET and (self.verdict, self.wanted) == (other.verdict, other.wanted)


@dataclass(frozen=True)
class State:
    """Between two periods."""

    wanted: int | None = None  # executors; None: nothing was decided so far
    phase: Phase = "Idle"
    before: int | None = None  # executors before the change that is on its way
    deadline: float | None = None  # until when it may take
    direction: Direction | None = None  # of the votes
    votes: int = 0
    most: int = 0  # executors that any of these votes asked for
    cool_until: float = 0.0
    at: float | None = None  # the last period
    load: float | None = None  # τ of it
    blind: bool = False
    decisions: tuple[Decision, ...] = ()  # the newest last

    def remembered(self, decision: Decision) -> tuple[Decision, ...]:
        """With one more decision; one that repeats the last only counts."""
        if self.decisions and self.decisions[-1].again(decision):
            times = self.decisions[-1].times + 1
            return (*self.decisions[:-1], replace(decision, times=times))
        return (*self.decisions, decision)[-DECISIONS:]
