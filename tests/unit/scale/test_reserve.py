"""Who works, and who is spare."""

import pytest

from joinlib.scale.reserve import asked, working


@pytest.mark.parametrize(
    ("wanted", "spare", "most", "all_of_them"),
    [(1, 0, 4, 1), (1, 1, 4, 2), (3, 2, 4, 4), (4, 2, 4, 4), (4, 2, 3, 4)],
)
def test_no_more_than_most_are_asked_for(wanted: int, spare: int, most: int, all_of_them: int) -> None:
    """But never fewer than are wanted: limits that have just been lowered are for scaling to follow."""
    assert asked(wanted, spare, most) == all_of_them


def test_who_has_units_keeps_them() -> None:
    """Whoever else comes, and however much state the others are said to hold."""
    assert working(["1", "2", "3"], 2, placed={"2", "3"}, rehearsed={"1"}, held={"1": 9}) == ["2", "3"]


def test_most_state_stays_when_fewer_are_wanted() -> None:
    """The one with the least becomes spare: its units move, as they would if it left."""
    assert working(["1", "2", "3"], 2, placed={"1", "2", "3"}, held={"1": 5, "2": 9, "3": 7}) == ["2", "3"]


def test_a_warm_one_is_first_when_more_are_wanted() -> None:
    """Of equals the oldest: 9 is older than 10."""
    assert working(["1", "2", "3"], 2, placed={"1"}, rehearsed={"1", "3"}) == ["1", "3"]
    assert working(["1", "10", "9"], 2, placed={"1"}) == ["1", "9"]


def test_a_spare_one_takes_the_place_of_one_that_is_gone() -> None:
    """Without anybody's decision."""
    assert working(["2"], 1, placed={"1"}) == ["2"]
    assert working([], 1, placed={"1"}) == []
