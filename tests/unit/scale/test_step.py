"""Two-phase scaling, period by period: votes, limits, the change that is on its way, and everything that can go wrong."""

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.metric.table import DIRECTIONS, SCALING, VERDICTS
from joinlib.scale import Load, Observed, Policy, State, due, fitting, step, tau
from joinlib.scale.state import DECISIONS, Direction, Phase, Verdict
from tests import configs

C = 1000.0
POLICY = configs.policy(min=1, max=16, votes=3, period_s=10, cool_s=20, patience_s=60)


def seen(k: int, held: float, ready: int | None = None, lag: float | None = 0) -> Observed:
    """k executors that hold so much together, and read as fast as rows come."""
    load = Load(k, held, k * C, lag=lag, rate=100)
    return Observed(ready=k if ready is None else ready, load=load)


def play(state: State, *moments: Observed, policy: Policy = POLICY, start: float = 0) -> State:
    """Period after period."""
    for number, moment in enumerate(moments):
        state = step(state, policy, moment, start + number * policy.period_s)
    return state


def verdicts(state: State) -> list[str]:
    return [d.verdict for d in state.decisions]


OVER, UNDER, FINE = seen(2, 1800), seen(4, 800), seen(2, 1000)
BLIND = Observed(ready=2, why="Prometheus does not answer")


def test_the_names_are_those_of_the_table_of_figures() -> None:
    """What is exported by verdict, phase and direction is said with these words."""
    assert set(VERDICTS) == set(Verdict.__args__)  # type: ignore[attr-defined]
    assert set(SCALING) == set(Phase.__args__)  # type: ignore[attr-defined]
    assert set(DIRECTIONS) == set(Direction.__args__)  # type: ignore[attr-defined]


def test_the_papers_numbers() -> None:
    """8 units of 2 GB at 1.2 GB and more each ask for so many that each holds 0.6 of its memory (figure 12)."""
    load = Load(8, 8 * 1.2, 8 * 2.0)
    assert tau(load) == pytest.approx(0.6)
    assert fitting(load, 0.6) == 8
    load = Load(8, 8 * 1.8, 8 * 2.0)  # Δ = (0.9 / 0.6 - 1) · 8 = 4
    assert fitting(load, 0.6) == 12
    load = Load(12, 12 * 0.45, 12 * 2.0)  # Δ = (0.225 / 0.6 - 1) · 12 = -7.5
    assert fitting(load, 0.6) == 5


def test_a_change_is_confirmed_by_votes_in_a_row() -> None:
    """τ = 0.9 on two executors: at the third vote Δ = (0.9 / 0.6 - 1) · 2 = 1 is asked for."""
    state = play(State(wanted=2), OVER, OVER)
    assert (state.wanted, state.votes, state.phase, state.direction) == (2, 2, "Idle", "out")
    state = play(State(wanted=2), OVER, OVER, OVER)
    assert (state.wanted, state.before, state.phase, state.deadline) == (3, 2, "Growing", 20 + 60)
    assert verdicts(state) == ["Voting", "Voting", "ScaleOut"]


def test_a_spike_shorter_than_the_votes_changes_nothing() -> None:
    """The counter begins anew."""
    state = play(State(wanted=2), OVER, OVER, FINE, OVER, OVER, FINE)
    assert (state.wanted, state.votes, state.phase) == (2, 0, "Idle")


def test_a_vote_for_the_other_direction_begins_anew() -> None:
    """As in the paper: the counter is of the same decision in consecutive iterations."""
    assert play(State(wanted=2), OVER, OVER, seen(2, 100), OVER).votes == 1


def test_a_change_is_settled_when_pods_are_there_and_then_rests() -> None:
    """No votes while it cools down, so that what a cold executor does is not read as load."""
    state = play(State(wanted=2), OVER, OVER, OVER, seen(2, 1800), seen(3, 3000))
    assert (state.phase, verdicts(state)[-2:]) == ("Idle", ["Waiting", "Settled"])
    state = play(state, seen(3, 3000), start=50)
    assert (state.votes, verdicts(state)[-1]) == (0, "Cooling")
    state = play(state, seen(3, 3000), start=60)
    assert (state.votes, verdicts(state)[-1]) == (1, "Voting")


def test_scale_in_waits_until_the_leavers_are_gone() -> None:
    """Ready is as wanted at once; leaving executors still hold what they have shuffled."""
    state = play(State(wanted=4), UNDER, UNDER, UNDER)
    assert (state.wanted, state.phase) == (2, "Shrinking")
    state = play(state, Observed(ready=2, leaving=2), start=30)
    assert state.phase == "Shrinking"
    assert play(state, Observed(ready=2), start=40).phase == "Idle"


@pytest.mark.parametrize("lag", [None, 1001])
def test_executors_are_not_removed_while_rows_wait(lag: float | None) -> None:
    """More than a period's worth, or nobody knows how many; adding is not held up by that."""
    state = play(State(wanted=4), *[seen(4, 800, lag=lag)] * 5)
    assert (state.wanted, state.votes, verdicts(state)) == (4, 0, ["CatchingUp"])
    assert play(State(wanted=2), *[seen(2, 1800, lag=lag)] * 3).wanted == 3


def test_without_all_figures_nothing_is_decided() -> None:
    """Votes to add wait, votes to remove are void; the reason is kept."""
    state = play(State(wanted=2), OVER, OVER, BLIND)
    assert (state.wanted, state.votes, state.blind, state.load) == (2, 2, True, None)
    assert state.decisions[-1].reason == "Prometheus does not answer"
    assert play(state, OVER, start=30).wanted == 3
    state = play(State(wanted=4), UNDER, UNDER, replace(BLIND, ready=4), UNDER)
    assert (state.wanted, state.votes) == (4, 1)


def test_figures_of_other_executors_than_there_should_be_are_not_complete() -> None:
    """One of two has died, and its replacement is not there yet."""
    state = play(State(wanted=2), *[seen(1, 900)] * 9)
    assert (state.wanted, verdicts(state)) == (2, ["Blind"])
    assert "1 of 2 executors" in state.decisions[-1].reason


@given(st.lists(st.sampled_from([BLIND, replace(BLIND, ready=None), replace(BLIND, ready=0)]), max_size=30))
def test_nothing_scales_on_silence(moments: list[Observed]) -> None:
    """Whatever is missing, for how long it may be."""
    assert play(State(wanted=2), *moments).wanted == 2


def test_pods_that_stay_pending_are_given_up() -> None:
    """What has come is kept; there is a pause as long as the patience before it is tried again."""
    state = play(State(wanted=2), *[seen(2, 3000)] * 3)
    assert state.wanted == 5
    state = play(state, *[seen(3, 3000)] * 6, start=30)
    assert (state.wanted, state.phase, verdicts(state)[-1]) == (3, "Idle", "RolledBack")
    assert "3 of 5 executors work" in state.decisions[-1].reason
    assert state.cool_until == 80 + 60
    state = play(state, *[seen(3, 3000)] * 9, start=90)
    assert state.wanted == 5, "it is tried again"


def test_a_growth_that_is_given_up_never_ends_below_what_there_was() -> None:
    """Also if an executor was lost meanwhile."""
    state = play(State(wanted=4), *[seen(4, 6000)] * 3)
    assert state.wanted == 10
    assert play(state, *[Observed(ready=1)] * 7, start=30).wanted == 4


def test_an_executor_lost_while_others_leave() -> None:
    """It is replaced; if it is not in time, what was wanted stays wanted: never fewer."""
    state = play(State(wanted=8), *[seen(8, 800)] * 3)
    assert (state.wanted, state.phase) == (4, "Shrinking")
    lost = play(state, Observed(ready=3, leaving=1), Observed(ready=3), start=30)
    assert (lost.wanted, lost.phase) == (4, "Shrinking")
    assert play(lost, Observed(ready=4), start=50).phase == "Idle"
    late = play(state, *[Observed(ready=3)] * 7, start=30)
    assert (late.wanted, late.phase) == (4, "Idle")


def test_executors_that_do_not_leave_are_kept() -> None:
    """Nothing waits forever."""
    state = play(State(wanted=8), *[seen(8, 800)] * 3)
    state = play(state, *[Observed(ready=6)] * 6, start=30)
    assert (state.wanted, verdicts(state)[-1]) == (6, "RolledBack")


def test_a_driver_that_restarts_stops_the_clock_of_a_change() -> None:
    """It comes back with fewer executors and is told again; the time it took does not count."""
    state = play(State(wanted=2), OVER, OVER, OVER)
    state = play(state, *[Observed(why="no driver")] * 50, start=30)
    assert (state.wanted, state.phase) == (3, "Growing")
    state = play(state, Observed(ready=0), Observed(ready=1), Observed(ready=3), start=530)
    assert (state.wanted, state.phase, verdicts(state)[-1]) == (3, "Idle", "Settled")


def test_a_number_in_the_spec_wins() -> None:
    """It ends a change that is on its way and is followed at once; without it scaling goes on from there."""
    state = play(State(wanted=2), OVER, OVER, OVER)
    state = play(state, OVER, policy=replace(POLICY, pinned=7), start=30)
    assert (state.wanted, state.phase, state.votes, verdicts(state)[-1]) == (7, "Idle", 0, "Pinned")
    assert play(state, seen(7, 4000), start=40).wanted == 7


def test_limits_that_change_are_followed_at_once() -> None:
    """Without votes, and even while blind; never given up below them."""
    state = play(State(wanted=2), BLIND, policy=replace(POLICY, min=5))
    assert (state.wanted, state.phase) == (5, "Growing")
    assert play(state, *[Observed(ready=2)] * 20, policy=replace(POLICY, min=5), start=10).wanted == 5
    state = play(State(wanted=8), BLIND, policy=replace(POLICY, max=3))
    assert (state.wanted, state.phase) == (3, "Shrinking")


def test_the_ends_of_the_range_are_said() -> None:
    """At the maximum and at the minimum; between them the load is followed."""
    for moment, policy, why in (
        (OVER, replace(POLICY, max=2), "max 2"),
        (seen(2, 10), replace(POLICY, min=2), "min is 2"),
        (seen(2, 590), POLICY, None),
    ):
        state = play(State(wanted=2), *[moment] * 4, policy=policy)
        if why is None:
            assert state.wanted == 1
        else:
            assert (state.wanted, verdicts(state)) == (2, ["AtLimit"])
            assert why in state.decisions[-1].reason


def test_a_step_is_limited() -> None:
    """To four times the executors, and to half of them; the next step follows."""
    assert play(State(wanted=2), *[seen(2, 90_000)] * 3).wanted == 8
    assert play(State(wanted=9), *[seen(9, 10)] * 3).wanted == 5


def test_the_most_that_any_vote_asked_for_counts() -> None:
    """One quiet vote among loud ones must not make the change too small."""
    assert play(State(wanted=2), seen(2, 2900), OVER, OVER).wanted == 5
    assert play(State(wanted=8), seen(8, 2300), seen(8, 800), seen(8, 800)).wanted == 4


def test_periods_are_counted_by_the_clock_of_the_state() -> None:
    """A little early is in time; a clock that was set back does not stop scaling."""
    state = play(State(wanted=2), FINE, start=100)
    assert [due(state, POLICY, now) for now in (100, 105, 109, 110, 50)] == [False, False, True, True, True]
    assert due(State(), POLICY, 0)


def test_the_last_decisions_are_kept() -> None:
    """Twenty; those that only repeat the last are counted, so that a quiet week does not push out what happened."""
    state = play(State(wanted=2), OVER, *[FINE] * 1000)
    assert [(d.verdict, d.times) for d in state.decisions] == [("Voting", 1), ("Steady", 1000)]
    state = play(state, *[OVER, FINE] * 40)
    assert len(state.decisions) == DECISIONS


# --- laws ----------------------------------------------------------------------------------------------------------------

LOADS = st.integers(0, 40_000).map(float)
SIZES = st.integers(1, 16)
POLICIES = st.builds(
    lambda low, high, votes, top: replace(
        POLICY, low=low / 10, high=high / 10, target=(low + high) / 20, votes=votes, max=top
    ),
    st.integers(1, 4),
    st.integers(5, 9),
    st.integers(1, 4),
    st.integers(1, 16),
)


@given(POLICIES, SIZES, LOADS)
def test_bounded(policy: Policy, k: int, held: float) -> None:
    """The answer lies between min and max, and a step within its limits."""
    k = min(k, policy.max)
    wanted = play(State(wanted=k), *[seen(k, held)] * policy.votes, policy=policy).wanted
    assert wanted is not None
    assert policy.min <= wanted <= policy.max
    assert ceil(k / 2) <= wanted <= 4 * k


@given(POLICIES, SIZES, LOADS, LOADS)
def test_monotone(policy: Policy, k: int, one: float, other: float) -> None:
    """More load never means fewer executors."""
    k = min(k, policy.max)
    less, more = (
        play(State(wanted=k), *[seen(k, held)] * policy.votes, policy=policy).wanted
        for held in sorted((one, other))
    )
    assert less is not None
    assert more is not None
    assert less <= more


@given(POLICIES, SIZES, LOADS)
def test_fed_its_own_outcome_it_stays(policy: Policy, k: int, held: float) -> None:
    """Once as many are there as fit the same load, nothing is asked for any more, forever."""
    state, k = State(wanted=min(k, policy.max)), min(k, policy.max)
    now, seen_sizes = 0.0, []
    for _ in range(12 * (policy.votes + 4)):
        state = step(state, policy, seen(k, held), now)
        assert state.wanted is not None
        k, now = state.wanted, now + policy.period_s
        seen_sizes.append(k)
    last = seen_sizes[-3 * (policy.votes + 4) :]
    assert set(last) == {last[0]}
    assert seen_sizes == sorted(seen_sizes) or seen_sizes == sorted(seen_sizes, reverse=True), "one way only"


MOMENTS = st.builds(
    lambda ready, leaving, held, known: (
        replace(seen(max(ready or 1, 1), held, ready=ready or 0), leaving=leaving, ready=ready)
        if known
        else Observed(ready=ready, leaving=leaving, why="unknown")
    ),
    st.none() | st.integers(0, 16),
    st.integers(0, 3),
    LOADS,
    st.booleans(),
)


@given(st.lists(MOMENTS, max_size=60), st.integers(1, 16))
def test_never_out_of_range_and_never_stuck(moments: list[Observed], k: int) -> None:
    """Whatever is seen, in any order; once things are quiet again, a change ends and the load is followed."""
    state = State(wanted=k)
    for number, moment in enumerate(moments):
        state = step(state, POLICY, moment, number * 10.0)
        assert state.wanted is not None
        assert 1 <= state.wanted <= 16
        assert (state.phase == "Idle") == (state.deadline is None)
    now = len(moments) * 10.0
    for _ in range(60):
        assert state.wanted is not None
        state, now = step(state, POLICY, seen(state.wanted, 4800), now), now + 10
    assert (state.wanted, state.phase) == (8, "Idle") or 0.3 <= 4.8 / (state.wanted or 1) <= 0.8


def test_by_which_decision_so_many_are_wanted() -> None:
    """That of the change, also when others follow; none once it is forgotten, or when the number is another one."""
    state = play(State(wanted=2), OVER, OVER, OVER)
    assert state.decided == state.decisions[-1]
    later = play(state, seen(3, 1800), seen(3, 1800), start=30)
    assert verdicts(later)[-2:] == ["Settled", "Cooling"]
    assert later.decided == state.decided
    assert later.decided is not None
    assert (later.decided.verdict, later.decided.reason) == ("ScaleOut", "τ 0.90 is over 0.8")
    assert replace(later, wanted=2).decided is None
    assert replace(later, decisions=later.decisions[-2:]).decided is None
