"""What is not known is guessed from the state; what is found in sorted runs costs what it costs there."""

import math

import pytest

from joinlib.join.order.policy import star
from joinlib.join.order.statistics import StateSize, Statistics, nothing
from joinlib.join.order.watch import ProbeCounts
from joinlib.path.cost import FILTERED, PAGE_READ, SearchedRun
from joinlib.path.graph import Arrangement

FEW = StateSize((SearchedRun(10, 1024),), 10)
TWO = star(2).arrangements
MANY = StateSize((SearchedRun(100, 1024),), 400)


def test_before_the_first_cycle() -> None:
    """A tenth of the keys of the many can be found among the few; each of the many has four rows."""
    model = nothing(2, 2).model([FEW, MANY], TWO)

    assert (model.rate[1][0], model.rate[0][1]) == (0.1, 1.0)
    assert (model.per_hit[1][0], model.per_hit[0][1]) == (1.0, 4.0)
    assert model.query[1] == pytest.approx((1 + 10 / 2048, 1 + 100 / 2048))


def test_an_asker_that_is_not_stored_by_this_key() -> None:
    """Nothing says how many of its keys are there: all are taken to be."""
    by_other = (Arrangement(0, (1,)), Arrangement(1, (0,)))
    assert nothing(2, 2).model([MANY, FEW], by_other).rate[0][1] == 1.0
    assert nothing(2, 2).model([MANY, FEW], TWO).rate[0][1] == 0.1


def test_nothing_is_stored_yet() -> None:
    """Where there is nothing, nothing is found."""
    model = nothing(2, 2).model([StateSize((), 0), MANY], TWO)

    assert (model.rate[1][0], model.rate[0][1], model.per_hit[1][0]) == (0.0, 1.0, 1.0)


def test_a_sorted_run_costs_what_passes_its_filter() -> None:
    """Equation 6: those who find nothing ask the filter alone; pages that are not in memory are read from the disk."""
    runs = (SearchedRun(1024),)
    half = StateSize((SearchedRun(1024, cached=0.5),), 1024)

    assert StateSize(runs, 1024).weight(1.0) == 1 + 10
    assert StateSize(runs, 1024).weight(0.0) == pytest.approx(1 + 10 * FILTERED)
    assert half.weight(1.0) == 1 + 10 + PAGE_READ / 2
    assert StateSize(runs, 1024).weight(1.0, 2048.0) == 1 + math.log2(2048)


def test_seconds_are_shared_out_by_what_was_asked() -> None:
    """αq: 6 s for 1 query of a head without chains to speak of, and 1 of a sorted run that finds (1 + 1 + 10 - 1) units."""
    sizes = [StateSize((SearchedRun(0, 8),), 0), StateSize((SearchedRun(16),), 16)]
    seen = ProbeCounts([0, 1, 1, 0], [0, 1, 0, 0], [0, 3, 0, 0], [8.0, 1.0], [1, 1], asking=6.0)
    known = nothing(2, 2).after(seen, sizes, 3)

    assert known.query_seconds == 6.0 / ((1 + 4) + 1)
    assert known.match_seconds == (9.0 - 6.0) / 3
    assert Statistics.read(known.plain()).plain() == known.plain()
    again = known.after(
        ProbeCounts([0, 1, 1, 0], [0] * 4, [0] * 4, [12.0, 0.0], [1, 1], asking=12.0), sizes, 3
    )
    weights = [sizes[1].weight(0.0), 1.0]
    assert again.query_seconds == pytest.approx((1.0 + 12.0 / sum(weights)) / 2)
