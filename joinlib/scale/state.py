"""The memory of scaling: one value, which the caller keeps in the status of the StreamJoin.

Without it scaling starts over.
"""

from dataclasses import dataclass, replace
from typing import Literal

Phase = Literal["Idle", "Growing", "Shrinking"]
Direction = Literal["out", "in"]
By = Literal["state", "lag"]
Verdict = Literal[
    "Steady",  # between the thresholds
    "Voting",  # over or under a threshold, but not for long enough
    "ScaleOut",
    "ScaleIn",
    "Settled",  # the wanted executors are there
    "RolledBack",  # they did not come in time
    "Waiting",  # for executors to come or go
    "Cooling",  # a change was just made
    "CatchingUp",  # executors are not removed while rows wait
    "AtLimit",  # more, or fewer, would be better, but the limits forbid it
    "Ineffective",  # rows wait, but more executors did not read faster
    "Advised",  # it would be changed, but the spec wants no more than advice
    "Limits",  # the spec's limits have changed
    "Blind",  # metrics are missing
    "Pinned",  # the spec fixes the number
]
DECISIONS = 20  # decisions that are remembered
_QUIET = {
    "Steady",
    "Waiting",
    "Cooling",
    "CatchingUp",
    "AtLimit",
    "Ineffective",
    "Advised",
    "Blind",
    "Pinned",
}
_CHANGING = {"ScaleOut", "ScaleIn", "RolledBack", "Limits", "Pinned"}  # the number of executors


@dataclass(frozen=True)
class Decision:
    """The decision of one period, with its inputs."""

    at: float  # seconds since 1970
    verdict: Verdict
    wanted: int  # executors, afterwards
    ready: int | None = None
    load: float | None = None  # τ
    votes: int = 0
    reason: str = ""
    times: int = 1  # consecutive periods with this decision

    def again(self, other: "Decision") -> bool:
        """Whether `other` only repeats this decision."""
        return self.verdict in _QUIET and (self.verdict, self.wanted) == (other.verdict, other.wanted)


@dataclass(frozen=True)
class Wants:
    """How many executors state and lag want, and why the larger number wins."""

    by: By
    state: int
    why: str
    lag: int | None = None  # None: it is not known, or does not count


@dataclass(frozen=True)
class Backlog:
    """The lag in a period."""

    rows: int  # that wait
    arrival: float  # rows that come per second
    rate: float  # rows read per second of busy time
    seconds: float | None = None  # until none wait, if all goes on like this; None: never


@dataclass(frozen=True)
class Learnt:
    """What rows that waited have taught. Rates are in rows per second of busy time."""

    able: float  # of one executor, when rows waited last
    tried: int | None = None  # executors before some were added for the lag; None once no rows wait
    tried_rate: float | None = None  # of those


@dataclass(frozen=True)
class State:
    """The memory of scaling between two periods."""

    wanted: int | None = None  # executors; None: nothing was decided so far
    phase: Phase = "Idle"
    before: int | None = None  # executors before the change that is on its way
    deadline: float | None = None  # of that change
    direction: Direction | None = None  # of the votes
    votes: int = 0
    most: int = 0  # executors that any of these votes asked for
    cool_until: float = 0.0
    at: float | None = None  # the last period
    load: float | None = None  # τ of the last period
    blind: bool = False
    wants: Wants | None = None  # of the last period in which executors neither came nor went
    backlog: Backlog | None = None  # of the last period
    learnt: Learnt | None = None  # None: rows never waited
    advised: int | None = None  # executors that a job in mode advise would have
    decisions: tuple[Decision, ...] = ()  # the newest last

    @property
    def decided(self) -> Decision | None:
        """The decision by which so many executors are wanted; None if it is not remembered."""
        found = (d for d in reversed(self.decisions) if d.verdict in _CHANGING and d.wanted == self.wanted)
        return next(found, None)

    def remembered(self, decision: Decision) -> tuple[Decision, ...]:
        """Append a decision to the list; one that repeats the last only increases its count."""
        if self.decisions and self.decisions[-1].again(decision):
            times = self.decisions[-1].times + 1
            return (*self.decisions[:-1], replace(decision, times=times))
        return (*self.decisions, decision)[-DECISIONS:]
