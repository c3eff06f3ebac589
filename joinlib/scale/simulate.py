"""What would scaling do with this load? The steps in a closed loop with a world that is as simple as can be.

The load is given for each moment; it spreads evenly over the executors that are there. Executors that are wanted come after
`startup_s`, up to `room`; those that are not wanted leave at once.
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
class Tick:
    """One period."""

    at: float
    held: float  # bytes, of all executors
    ready: int  # executors at the beginning of the period
    wanted: int  # executors at its end
    load: float  # τ
    decision: Decision


@dataclass
class World:
    """Executors that come and go."""

    capacity: float  # bytes that one may hold
    startup_s: float = 30.0
    room: int | None = None  # executors for which there are nodes
    ready: int = 1
    _coming: list[float] = field(default_factory=list)  # when each will be there

    def want(self, total: int, now: float) -> None:
        """What Spark and Kubernetes would do."""
        self.ready = min(self.ready, total)
        del self._coming[max(0, total - self.ready) :]
        missing = total - self.ready - len(self._coming)
        self._coming += [now + self.startup_s] * missing

    def pass_until(self, now: float) -> None:
        """Those whose time has come are there, if there is room."""
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
) -> list[Tick]:
    """One tick for each period of the trace. `noise`: of the period, the part by which figures are off."""
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
        ticks.append(Tick(now, held, k, state.wanted, held / (k * world.capacity), state.decisions[-1]))
    return ticks


def at(trace: Trace, now: float) -> float:
    """The load at a moment: what was last said."""
    return trace[max(0, bisect_right(trace, now, key=lambda point: point[0]) - 1)][1]


def read(file: Path) -> Trace:
    """A trace from CSV with the columns `seconds` and `bytes`, such as an export of sum(streamjoin_executor_state_bytes)."""
    try:
        with file.open(newline="") as text:
            points = [(float(row["seconds"]), float(row["bytes"])) for row in csv.DictReader(text)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file}: cannot be read ({error}); write CSV with the columns seconds,bytes: one line for each change of the state"
        ) from error
    if not points or points != sorted(points, key=lambda p: p[0]) or min(held for _, held in points) < 0:
        raise InputError(f"{file}: needs at least one line, in order of seconds, and no load below 0")
    return points
