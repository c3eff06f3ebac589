"""Simulates scaling under a given load, as a closed loop with a simple model of the cluster.

The load is given for each moment and spreads evenly over the executors. Wanted executors arrive after
`startup_s`, up to `room`; executors that are no longer wanted leave at once. Each reads so many rows a second as
`rate` says; what they do not read waits. An engine that keeps up reads no more than comes, so its true rate says
no more of it than that.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from joinlib.scale.load import Load, Observed
from joinlib.scale.policy import Policy
from joinlib.scale.state import Decision, State
from joinlib.scale.step import step


@dataclass(frozen=True)
class Point:
    """The load from a moment on."""

    seconds: float
    held: float  # bytes of state of all executors
    arriving: float = 0.0  # rows per second
    waiting: float | None = None  # rows that wait at that moment; None: those that were left


Trace = Sequence[Point]  # in order of time


@dataclass(frozen=True)
class Period:
    """The outcome of one period."""

    at: float
    held: float  # bytes, of all executors
    ready: int  # executors at the beginning of the period
    wanted: int  # executors at its end
    load: float  # τ
    decision: Decision
    waiting: float = 0.0  # rows


@dataclass
class World:
    """A cluster whose executors come and go."""

    capacity: float  # bytes that one may hold
    startup_s: float = 30.0
    room: int | None = None  # executors for which there are nodes
    ready: int = 1
    rate: Callable[[int], float] | None = None  # rows a second of that many executors; None: as many as come
    waiting: float = 0.0  # rows
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

    def read(self, arriving: float, seconds: float) -> float:
        """Read for so long what waits and what comes; return the true rate that is seen."""
        if self.rate is None:
            return arriving
        able = self.rate(self.ready)
        left = max(0.0, self.waiting + (arriving - able) * seconds)
        self.waiting, busy = left, left > 0
        return able if busy else min(able, max(arriving, 1.0))


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
    begin, end, last = trace[0].seconds, trace[-1].seconds, None
    for number in range(int((end - begin) / policy.period_s) + 1):
        now = begin + number * policy.period_s
        world.pass_until(now)
        point, error = at(trace, now), 1 + noise(number)
        rate = world.read(point.arriving * error, policy.period_s if number else 0.0)
        if point is not last and point.waiting is not None:
            world.waiting = point.waiting
        last = point
        load = _load(world, point, error, rate)
        state = step(state, policy, Observed(ready=world.ready, load=load), now)
        assert state.wanted is not None
        tau, decision = load.held / load.capacity, state.decisions[-1]
        ticks.append(Period(now, load.held, world.ready, state.wanted, tau, decision, world.waiting))
        world.want(state.wanted, now)
    return ticks


def _load(world: World, point: Point, error: float, rate: float) -> Load:
    k = world.ready
    held, room = point.held * error, k * world.capacity
    if world.rate is None:
        return Load(k, held, room, lag=0, rate=0)
    return Load(k, held, room, world.waiting, rate, point.arriving * error, rate)


def at(trace: Trace, now: float) -> Point:
    """The load at a moment: that of the last point before it."""
    return trace[max(0, bisect_right(trace, now, key=lambda point: point.seconds) - 1)]
