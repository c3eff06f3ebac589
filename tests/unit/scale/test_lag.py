"""Scaling by lag: a backlog, what one executor can do, and that nothing flaps whatever the load is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joinlib.scale import Load, Observed, Policy, State, step
from joinlib.scale.simulate import Period, Point, World, simulate
from joinlib.scale.state import Learnt
from joinlib.scale.wants import wants
from tests import configs

C = 1e9  # bytes that an executor may hold
R = 1000.0  # rows that it reads in a second
POLICY = configs.policy(min=1, max=16, votes=3, period_s=60, cool_s=120, patience_s=300)
HOUR = 3600.0


def seen(k: int, lag: float | None, arrival: float | None, rate: float | None, held: float = 0.0) -> Observed:
    """k executors; rows that wait, that come in a second, and that are read in a second of busy time."""
    return Observed(ready=k, load=Load(k, held, k * C, lag, rate or 0.0, arrival, rate))


def play(state: State, *moments: Observed, policy: Policy = POLICY, start: float = 0.0) -> State:
    for number, moment in enumerate(moments):
        state = step(state, policy, moment, start + number * policy.period_s)
    return state


def said(state: State) -> tuple[str, str]:
    return state.decisions[-1].verdict, state.decisions[-1].reason


BEHIND = seen(2, 600_000, 3000, 2000)


def test_a_job_that_falls_behind_is_scaled_out() -> None:
    """3000 rows come, and 600 000 / 300 s are to be caught up: 5000 a second, of which an executor does 0.8 · 1000."""
    state = play(State(wanted=2), BEHIND, BEHIND)
    assert (state.wanted, state.votes, state.direction) == (2, 2, "out")
    state = play(State(wanted=2), BEHIND, BEHIND, BEHIND)
    assert (state.wanted, state.phase) == (7, "Growing")
    assert state.wants is not None
    assert (state.wants.by, state.wants.state, state.wants.lag) == ("lag", 1, 7)
    assert said(state)[1] == (
        "600000 rows wait and 3000/s come, 2 executors read 2000/s and will never catch up (5m are allowed);"
        " state wants 1, lag 7"
    )
    came = play(state, seen(7, 700_000, 3000, 7000), seen(7, 500_000, 3000, 7000), start=180)
    assert (said(came)[0], came.wants) == ("Cooling", state.wants), "why is still said"


def test_a_backlog_that_is_read_in_time_is_left_alone() -> None:
    """600 000 rows at 4000 - 1000 a second take 200 s, and 300 s are allowed; nothing is removed meanwhile."""
    state = play(State(wanted=4), *[seen(4, 600_000, 1000, 4000)] * 9)
    assert (state.wanted, state.votes) == (4, 0)
    assert said(play(State(wanted=4), seen(4, 900_000, 1001, 4000)))[0] == "Voting"


def test_small_batches_are_no_backlog() -> None:
    """A job that keeps up reads as many rows in a second of busy time as come, and some always wait for the next batch."""
    state = play(State(wanted=4), *[seen(4, 2000, 1000, 1000, held=2e9)] * 9)
    assert (state.wanted, said(state)) == (4, ("Steady", "τ 0.50 is between 0.3 and 0.8"))


def test_the_larger_want_wins() -> None:
    """Of a state that is too large and a lag that is too long, and of both that allow fewer executors."""
    large = play(State(wanted=2), *[replace(BEHIND, load=replace(BEHIND.load, held=6e9))] * 3)  # type: ignore[type-var]
    assert (large.wanted, large.wants and large.wants.by) == (8, "state"), "τ 3.00, from 2 at most times four"
    knows = State(wanted=8, learnt=Learnt(R))
    few = play(knows, *[seen(8, 0, 3000, 3000)] * 3)
    assert (few.wanted, few.wants and few.wants.lag, few.wants and few.wants.by) == (4, 4, "lag")
    kept = play(replace(knows, wanted=4), *[seen(4, 0, 3000, 3000)] * 9)
    assert (kept.wanted, said(kept)[0]) == (4, "Steady"), "the state alone would need no more than one"
    assert "state wants 1, lag 4" in said(kept)[1]


def test_what_one_executor_can_do_is_learnt_when_rows_wait() -> None:
    """Small batches of a job that keeps up say less of it, but never too much."""
    assert play(State(wanted=2), seen(2, 0, 500, 500)).learnt is None
    state = play(State(wanted=2), BEHIND)
    assert state.learnt == Learnt(1000)
    assert play(state, seen(2, 0, 500, 500)).learnt == Learnt(1000)
    assert play(state, seen(2, 0, 500, 4000)).learnt == Learnt(2000)
    assert play(state, seen(2, 600_000, 500, 800)).learnt == Learnt(400)
    assert play(state, seen(2, 0, 500, 500), policy=replace(POLICY, pinned=2)).learnt is None
    assert play(State(wanted=2), seen(2, 5, 0, 1e-9)).learnt is None, "next to nothing is no measure"


def test_executors_that_have_no_effect_are_not_added_again() -> None:
    """Two executors read 2000 rows, seven as many; once the rows are read it may be tried again."""
    state = play(State(wanted=2), *[BEHIND] * 3)
    assert state.learnt == Learnt(1000, 2, 2000)
    state = play(state, *[seen(7, 900_000, 3000, 2100)] * 9, start=180)
    assert state.wanted == 7
    assert said(state)[0] == "Ineffective"
    assert said(state)[1].endswith("2 executors read 2000 rows/s, 7 read 2100: more would not help")
    state = play(state, seen(7, 0, 1000, 2100), start=900)
    assert state.learnt == Learnt(300)
    better = play(State(wanted=2), *[BEHIND] * 3)
    better = play(better, *[seen(7, 9_000_000, 3000, 6000)] * 9, start=180)
    assert better.wanted == 16, "and those that have are"


@pytest.mark.parametrize("missing", ["lag", "arrival", "true_rate"])
def test_what_an_older_driver_does_not_say_is_no_want(missing: str) -> None:
    """Then the state alone decides, as before: executors are not removed while rows wait, or may wait."""
    assert BEHIND.load is not None
    observed = replace(BEHIND, load=replace(BEHIND.load, **{missing: None}))
    state = play(State(wanted=2), *[observed] * 5)
    assert (state.wanted, said(state)[0]) == (2, "CatchingUp")
    assert state.backlog is None
    assert state.wants is not None
    assert state.wants.lag is None or missing == "true_rate"


def test_the_lag_can_be_left_out() -> None:
    """catchUp: 0s."""
    state = play(State(wanted=2), *[BEHIND] * 9, policy=replace(POLICY, catch_up_s=0.0))
    assert (state.wanted, said(state)[0], state.wants and state.wants.lag) == (2, "CatchingUp", None)


def test_advice_is_all_that_a_job_in_that_mode_gets() -> None:
    """What would be done is said for as long as it would be, and taken back when it would not."""
    policy = replace(POLICY, advises=True)
    state = play(State(wanted=2), *[BEHIND] * 9, policy=policy)
    assert (state.wanted, state.phase, state.advised) == (2, "Idle", 7)
    assert said(state)[0] == "Advised"
    assert said(state)[1].endswith("7 executors instead of 2 are advised")
    assert state.decisions[-1].times == 7
    assert play(state, seen(2, 0, 2000, 2000, held=1e9), policy=policy).advised is None


@given(
    st.integers(1, 16),
    st.lists(st.integers(0, 10**7), min_size=2, max_size=2),
    st.floats(0, 1e5),
    st.floats(1, 1e5),
)
def test_more_rows_that_wait_never_want_fewer_executors(
    k: int, rows: list[int], arrival: float, rate: float
) -> None:
    """And more are wanted than there are only where rows wait for longer than they should."""
    few, many = (Load(k, 0, k * C, lag, rate, arrival, rate) for lag in sorted(rows))
    less, more = (wants(load, POLICY, Learnt(rate / k)).lag or 0 for load in (few, many))
    assert 1 <= less <= more
    assert more <= k or many.behind(POLICY.period_s)


# --- in a closed loop ----------------------------------------------------------------------------------------------------

Rate = Callable[[int], float]


def loop(
    points: Sequence[Point], rate: Rate, ready: int = 1, noise: float = 0.0, seed: int = 0
) -> list[Period]:
    random = Random(seed)
    return simulate(
        POLICY, World(C, 60, ready=ready, rate=rate), points, noise=lambda _: random.uniform(-noise, noise)
    )


def taken(ticks: Sequence[Period]) -> list[int]:
    return [n for n, _ in groupby(tick.wanted for tick in ticks)]


def turns(sizes: Sequence[int]) -> int:
    """How often growth and shrinking follow each other."""
    return len([*groupby(b > a for a, b in pairwise(sizes))])


points = st.builds(
    lambda arriving, held, waiting: (arriving, held, waiting),
    st.integers(0, 6000),
    st.one_of(st.just(1e7), st.floats(1e7, 8e9)),  # a state that does not count, and one that does
    st.one_of(st.none(), st.integers(0, 3_000_000)),
)
rates = st.sampled_from([0.0, 0.5, 0.8, 1.0]).map(lambda gain: lambda k: R * k**gain)


@given(
    st.lists(points, min_size=1, max_size=4),
    rates,
    st.integers(1, 16),
    st.sampled_from([0, 0.05]),
    st.integers(0, 999),
)
@settings(max_examples=40, deadline=None)
def test_nothing_flaps(
    loads: list[tuple[int, float, int | None]], rate: Rate, ready: int, noise: float, seed: int
) -> None:
    """Whatever comes, and however much executors help: after a change of the load they grow as often as they must, shrink,
    and stay. Who has never seen rows wait may have shrunk too far before; what was learnt then is not forgotten.
    """
    trace = [
        Point(number * 2 * HOUR, held, arriving, waiting)
        for number, (arriving, held, waiting) in enumerate(loads)
    ]
    last = trace[-1]
    ticks = loop(
        [*trace, replace(last, seconds=last.seconds + 6 * HOUR, waiting=None)], rate, ready, noise, seed
    )
    tail = [tick for tick in ticks if tick.at >= last.seconds + 10 * POLICY.period_s]
    assert turns(taken(tail)) <= 3, taken(tail)
    drained = max((tick.at for tick in ticks if tick.waiting), default=0.0)  # executors go once nothing waits
    settled = [tick for tick in ticks if tick.at >= max(last.seconds + 4 * HOUR, drained + 2 * HOUR)]
    assert taken(settled) == sorted(taken(settled), reverse=True), taken(settled)  # the last may go late
    assert all(POLICY.min <= tick.wanted <= POLICY.max for tick in ticks)


@given(st.integers(1, 12_000), st.integers(1, 16), st.floats(0, 9e9))
@settings(max_examples=20, deadline=None)
def test_what_can_be_read_is_read(arriving: int, ready: int, held: float) -> None:
    """Where executors help and there are enough, no rows wait in the end, and the state fits."""
    ticks = loop(
        [Point(0, held, arriving, 1_000_000), Point(4 * HOUR, held, arriving)], lambda k: R * k, ready
    )
    assert ticks[-1].waiting == 0
    assert ticks[-1].wanted * R > arriving
    assert ticks[-1].load <= POLICY.high


@given(st.integers(1100, 20_000), st.integers(1, 8))
@settings(max_examples=20, deadline=None)
def test_a_job_that_does_not_become_faster_grows_once(arriving: int, ready: int) -> None:
    """Such as one whose rows are all of one key."""
    ticks = loop([Point(0, 1e7, arriving), Point(4 * HOUR, 1e7, arriving)], lambda _: R, ready)
    assert sum(b > a for a, b in pairwise(taken(ticks))) <= 1
    assert ticks[-1].decision.verdict in ("Ineffective", "AtLimit")


def test_in_and_out_with_the_load() -> None:
    """A CPU-bound backlog with little state: more within the votes and two periods, and back when it is over."""
    ticks = loop(
        [Point(0, 1e7, 500), Point(600, 1e7, 4000), Point(6000, 1e7, 300), Point(12_000, 1e7, 300)],
        lambda k: R * k,
    )
    grown = next(tick.at for tick in ticks if tick.ready > 1)
    assert grown - 600 <= (POLICY.votes + 2) * POLICY.period_s
    assert taken(ticks) == [1, 4, 8, 5, 3, 2, 1]


def test_both_at_once() -> None:
    """The state wants nine and the lag eight; when the load has gone, the state keeps what it needs."""
    ticks = loop(
        [Point(0, 1e7, 500), Point(600, 5e9, 4000), Point(6000, 5e9, 300), Point(12_000, 5e9, 300)],
        lambda k: R * k,
    )
    assert taken(ticks) == [1, 4, 9]


def test_a_stateful_job_without_a_backlog_goes_by_its_state() -> None:
    """As if there were no lag."""
    trace = [(0, 5e8), (600, 5e9), (9000, 1e9), (20_000, 1e9)]
    with_lag = loop([Point(at, held, 100) for at, held in trace], lambda k: R * k)
    plain = simulate(POLICY, World(C, 60), [Point(at, held) for at, held in trace])
    assert taken(with_lag) == taken(plain)
