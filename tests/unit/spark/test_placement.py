"""Units spread when executors have come or gone, and then stay."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.spark.placement import REST, SPREAD, Placement, even

E = ["1", "2", "3", "4"]


def batch(wait: str, executors: list[str], placed: list[str], random: Random) -> list[str]:
    """Where Spark puts partitions: by luck if nobody waits, else where they were, if that is still there."""
    if wait == SPREAD:
        order = random.sample(executors, len(executors))
        return [order[(i + random.choice((0, 0, 0, 1))) % len(order)] for i in range(len(placed))]
    return [p if p in executors else random.choice(executors) for p in placed]


@pytest.mark.parametrize(
    ("placed", "fair"),
    [("11112222", True), ("1112222", True), ("11122222", False), ("11111111", False), ("11112223", False)],
)
def test_even(placed: str, fair: bool) -> None:
    """Nobody has two more than another, and nothing is left on an executor that is gone."""
    assert even(["1", "2"], list(placed)) == fair


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from([4, 8, 16]), st.integers(0, 999))
def test_spreads_for_a_few_batches_and_rests(sizes: list[int], partitions: int, seed: int) -> None:
    """Whatever the executors were before: after ten batches nothing moves any more, and each has had its chance."""
    random, placement, placed = Random(seed), Placement(), ["1"] * partitions
    for size in sizes:
        for number in range(12):
            placement = placement.after(E[:size], placed)
            assert placement.wait == REST or number <= 8
            placed = batch(placement.wait, E[:size], placed, random)
        assert placement.wait == REST
        assert set(placed) <= set(E[:size])


def test_an_even_state_is_left_alone() -> None:
    """Also right after an executor has come that was awaited."""
    placement = Placement().after(["1", "2"], ["1", "2", "1", "2"])
    assert (placement.wait, placement.left) == (REST, 0)
    placement = placement.after(["1", "2", "3"], ["1", "2", "1", "2"])
    assert placement.wait == SPREAD
    placement = placement.after(["1", "2", "3"], ["1", "2", "3", "2"])
    assert placement.wait == REST
    assert placement.after(["1", "2", "3"], ["1", "2", "2", "2"]).wait == REST, (
        "chance is not mended for ever"
    )
