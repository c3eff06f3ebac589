"""How far time has come, from ticks in any order."""

import pytest

from joinlib.model.time import ALWAYS, NEVER
from joinlib.model.watermark import Tick, advance, horizon

BOTH = [True, True]


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [
        ([], (5, (10, 10))),
        ([Tick(0, 20), Tick(1, 30)], (20, (20, 30))),
        ([Tick(1, 30), Tick(0, 12), Tick(0, 20)], (20, (20, 30))),
        ([Tick(0, 20)], (10, (20, 10))),
        ([Tick(0, 20), Tick(1, idle=True)], (20, (20, 10))),
        ([Tick(0, 20), Tick(1, closed=True)], (20, (20, 10))),
        ([Tick(0, idle=True), Tick(1, idle=True)], (5, (10, 10))),
        ([Tick(0, closed=True), Tick(1, idle=True)], (5, (10, 10))),
        ([Tick(0, closed=True), Tick(1, closed=True)], (ALWAYS, (10, 10))),
    ],
)
def test_advance(ticks: list[Tick], expected: tuple[int, tuple[int, int]]) -> None:
    """The minimum over the inputs that are waited for, when something was heard; a tick of the past changes nothing."""
    mark, tops = advance(5, (10, 10), (0, 0), ticks, BOTH)

    assert (mark, tops) == (max(expected[0], 10) if not ticks else expected[0], expected[1])


def test_it_never_goes_back() -> None:
    """An input that was idle and comes back does not pull the watermark down."""
    assert advance(50, (60, 10), (0, 0), [Tick(1, 20)], BOTH)[0] == 50


def test_an_input_without_a_time_is_not_asked() -> None:
    """It says nothing of time and holds nothing back."""
    assert advance(NEVER, (NEVER, NEVER), (3, 0), [Tick(0, 20), Tick(1, rows=5)], [True, False])[0] == 17


def test_the_horizon() -> None:
    """t + hold < watermark: then nobody needs the row."""
    assert horizon(100, 10) == 89
    assert horizon(100, None) == horizon(NEVER, 10) == NEVER
    assert horizon(ALWAYS, None) == ALWAYS
