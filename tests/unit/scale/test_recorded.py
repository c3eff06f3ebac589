"""Scaling under the load of real runs: what Prometheus recorded of them, replayed through the product's decisions.

Recorded are the bytes of state at each second, the rows that came, and what the operator decided. How many rows waited,
and how many an executor could read, is not: so the lag is replayed for executors of any speed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.scale.simulate import Period, Point, World, at, simulate
from tests import configs
from tests.unit.scale.test_lag import Rate, taken, turns

RESULTS = Path(__file__).parents[3] / "bench" / "results"
RUNS = "figure-12", "figure-12-spare"
# Of the job that was recorded (tests/cluster/test_scaling.py): what an executor may hold, and when decisions are made.
CAPACITY = 4 * 2**20
STARTUP_S = 9.0
POLICY = configs.policy(min=1, max=4, votes=4, period_s=5, cool_s=5, patience_s=90)
INPUTS = 2


@dataclass(frozen=True)
class Recording:
    """One run: its load, when that was high, and what the operator decided."""

    load: list[Point]
    high: tuple[float, float]
    changes: list[tuple[float, str, int]]
    taus: list[float]  # while one executor worked

    def replayed(self, begin: int, rate: Rate | None = None) -> list[Period]:
        """Decide at `begin` and once a period from then on."""
        world = World(CAPACITY, STARTUP_S, ready=1, rate=rate)
        return simulate(POLICY, world, [point for point in self.load if point.seconds >= begin])


def recording(name: str) -> Recording:
    report: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    plan = report["plan"]
    ends = [*accumulate(seconds for seconds, _ in plan)]
    rates = [Point(end - seconds, 0, INPUTS * rows) for end, (seconds, rows) in zip(ends, plan, strict=True)]
    longest = max(range(len(plan)), key=lambda n: plan[n][0] * plan[n][1])
    changes = [(seconds, verdict, wanted) for seconds, verdict, wanted, _ in report["changes"]]
    return Recording(
        load=[Point(abs(second), held, at(rates, second).arriving) for second, held in report["held"]],
        high=(rates[longest].seconds, ends[longest]),
        changes=changes,
        taus=[tau for second, tau, *_ in report["seen"] if second < changes[0][0]],
    )


def changes(ticks: Sequence[Period]) -> list[Period]:
    return [tick for tick in ticks if tick.decision.verdict in ("ScaleOut", "ScaleIn", "RolledBack")]


def steady(run: Recording, ticks: Sequence[Period]) -> None:
    """Nothing flaps: more come while the load is high and none goes; who goes later does not come again."""
    begin, end = run.high
    assert turns(taken(ticks)) <= 2, taken(ticks)
    assert any(tick.decision.verdict == "ScaleOut" for tick in ticks if tick.at < end)
    assert all(b.wanted >= a.wanted for a, b in pairwise(ticks) if begin <= b.at < end), taken(ticks)
    for a, b in pairwise(changes(ticks)):
        if a.decision.verdict != b.decision.verdict:
            assert b.at - a.at >= POLICY.cool_s + POLICY.votes * POLICY.period_s


@pytest.mark.parametrize("name", RUNS)
def test_the_recording_is_of_this_job(name: str) -> None:
    """Each memory load that the operator saw is that of bytes which Prometheus recorded."""
    run = recording(name)
    assert run.high == (40, 115)
    assert len(run.taus) > 20
    for tau in run.taus:
        assert min(abs(tau - point.held / CAPACITY) for point in run.load) < 0.001


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("begin", range(5))
def test_a_recorded_load_is_followed(name: str, begin: int) -> None:
    """In whichever second periods begin: as the operator did then, give or take a period; the spike is left alone."""
    run = recording(name)
    ticks = run.replayed(begin)
    steady(run, ticks)
    found = [(tick.at, tick.decision.verdict, tick.wanted) for tick in changes(ticks)]
    assert found[0][0] >= run.high[0], "the spike changed something"
    assert found[0][0] - run.high[0] <= (POLICY.votes + 2) * POLICY.period_s
    for (now, *what), (then, *was) in zip(found, run.changes, strict=False):
        assert what == was
        assert abs(now - then) <= POLICY.period_s
    assert len(found) >= len(run.changes)


@given(
    st.sampled_from(RUNS), st.integers(0, 4), st.integers(3_000, 100_000), st.sampled_from([0.5, 0.8, 1.0])
)
@settings(max_examples=60)
def test_nothing_flaps_for_the_lag(name: str, begin: int, rows: int, gain: float) -> None:
    """However many rows an executor reads in a second, of the 24 000 that came, and however much a further one helps."""
    run = recording(name)
    steady(run, run.replayed(begin, lambda k: rows * k**gain))
