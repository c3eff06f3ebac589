"""Smoothing says what its recurrences say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.join.order.smoothing import DAMPING, HISTORY, LINEAR, B, Trend, followed, newest

VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=20)
DAMPINGS = st.sampled_from([LINEAR, DAMPING, 0.0])


def over(values: list[float], damping: float, history: int = HISTORY) -> Trend:
    trend = Trend(values[0])
    for value in values[1:]:
        trend = trend.after(value, damping, history)
    return trend


@given(VALUES, DAMPINGS, st.integers(1, 9))
def test_recurrences(values: list[float], damping: float, history: int) -> None:
    """Level, slope and forecast by the textbook's equations, written as arrays."""
    A = 2 / (history + 1)
    levels, slopes = [values[0]], [0.0]
    for x in values[1:]:
        expected = levels[-1] + damping * slopes[-1]
        levels.append(A * x + (1 - A) * expected)
        slopes.append(B * (levels[-1] - levels[-2]) + (1 - B) * damping * slopes[-1])

    found = over(values, damping, history)
    assert [found.level, found.slope] == pytest.approx([levels[-1], slopes[-1]])
    assert found.ahead(damping) == pytest.approx(levels[-1] + damping * slopes[-1])


@given(st.floats(0, 1e6), st.integers(1, 30), DAMPINGS)
def test_constant(value: float, cycles: int, damping: float) -> None:
    """What does not change is foretold exactly."""
    assert over([value] * cycles, damping).ahead(damping) == pytest.approx(value)


def test_a_line_is_followed() -> None:
    """Holt's trend learns a constant growth, a damped one stays behind it."""
    line = [10.0 * n for n in range(60)]

    assert abs(over(line, LINEAR).ahead(LINEAR) - 600) < 1
    assert over(line, DAMPING).ahead(DAMPING) < 600


def test_nothing_seen() -> None:
    """A cycle in which nothing was seen changes nothing; without smoothing only the last one counts."""
    assert followed(None, None) is None
    assert followed(Trend(3.0, 1.0), None) == Trend(3.0, 1.0)
    assert followed(None, 5.0) == followed(Trend(3.0, 1.0), 5.0, history=None) == Trend(5.0)


def test_history() -> None:
    """A jump is a level at once with a history of 1, half of it with 3, and a tenth with 19."""
    jumps = {history: over([0.0, 10.0], 0.0, history).level for history in (1, HISTORY, 19)}

    assert jumps == {1: 10.0, HISTORY: 5.0, 19: 1.0}
    assert newest(HISTORY) == 0.5
