"""Simulates scaling under a given load, as a closed loop with a simple model of the cluster.

The load is given for each moment and spreads evenly over the executors. Wanted executors arrive after
`startup_s`, up to `room`; executors that are no longer wanted leave at once.
"""

import csv
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from joinlib.errors import InputError
from joinlib.scale.load import Load, Observed
from joinlib.scale.policy import Policy
from joinlib.scale.state import Decision, State
from joinlib.scale.step import step

Trace = Sequence[tuple[float, float]]  # (seconds, bytes of state of all executors), in order of time


@dataclass(frozen=True)
class Period:
    """The outcome of one period."""

    at: float
    held: float  # bytes, of all executors
    ready: int  # executors at the beginning of the period
    wanted: int  # executors at its end
    load: float  # τ
    decision: Decision


@dataclass
class World:
    """A cluster whose executors come and go."""

    capacity: float  # bytes that one may hold
    startup_s: float = 30.0
    room: int | None = None  # executors for which there are nodes
    ready: int = 1
    _coming: list[float] = field(default_factory=list)  # when each will be ready

    def want(self, total: int, now: float) -> None:
        """Request a total number of executors, as Spark and Kubernetes would."""
        self.ready = min(self.ready, total)
        del self._coming[max(0, total - self.ready) :]
        missing = total - self.ready - len(self._coming)
        self._coming += [now + self.startup_s] * missing

    def pass_until(self, now: float) -> None:
        """Let requested executors arrive whose time has come, if there is room."""
        due = sum(at <= now for at in self._coming)
        free = due if self.room is None else max(0, min(due, self.room - self.ready))
        self.ready += free
        del self._coming[:free]


def simulate(
    policy: Policy,
    world: World,
    trace: Trace,
    *,
    state: State | None = None,
    noise: Callable[[int], float] = lambda _: 0.0,
) -> list[Period]:
    """Run one step for each period of the trace.

    `noise`: the relative error of the load in a period, by its number.
    """
    state = state or State(wanted=world.ready)
    ticks = []
    begin, end = trace[0][0], trace[-1][0]
    for number in range(int((end - begin) / policy.period_s) + 1):
        now = begin + number * policy.period_s
        world.pass_until(now)
        held = at(trace, now) * (1 + noise(number))
        k = world.ready
        load = Load(k, held, k * world.capacity, lag=0, rate=0)
        state = step(state, policy, Observed(ready=k, load=load), now)
        assert state.wanted is not None
        world.want(state.wanted, now)
        ticks.append(Period(now, held, k, state.wanted, held / (k * world.capacity), state.decisions[-1]))
    return ticks


def at(trace: Trace, now: float) -> float:
    """The load at a moment: that of the last point before it."""
    return trace[max(0, bisect_right(trace, now, key=lambda point: point[0]) - 1)][1]


def read(file: Path) -> Trace:
    """Read a trace from CSV with the columns `seconds` and `bytes`.

    An export of sum(streamjoin_executor_state_bytes) has this form.

    Raises:
        InputError: if the file is not such a trace.
    """
    try:
        with file.open(newline="") as text:
            points = [(float(row["seconds"]), float(row["bytes"])) for row in csv.DictReader(text)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file}: cannot be read ({error}); write CSV with the columns seconds,bytes: one line for each"
            " change of the state"
        ) from error
    if not points or points != sorted(points, key=lambda p: p[0]) or min(held for _, held in points) < 0:
        raise InputError(f"{file}: needs at least one line, in order of seconds, and no load below 0")
    return points
