"""Durations: the forms that are read, those that are refused, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinlib.spec import duration


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("0s", 0),
        ("7us", 7),
        ("500ms", 500_000),
        ("10s", 10_000_000),
        ("2h30m", 9_000_000_000),
        ("7d", 604_800_000_000),
    ],
)
def test_units(text: str, us: int) -> None:
    """Every unit is read, alone and together."""
    assert duration.parse(text) == us


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "-1s", "1.5h", "7days", "10s\n", "1w", "٣s"])
def test_other_forms_are_refused(text: str) -> None:
    """The error shows what was written and how to write it."""
    with pytest.raises(
        ValueError, match=r"is not a duration; write numbers with units d, h, m, s, ms, us, such as 10s"
    ):
        duration.parse(text)


@pytest.mark.parametrize("text", ["1s1s", "1s2h"])
def test_units_come_once_and_in_order(text: str) -> None:
    """A unit out of order is a slip of the keyboard, not a sum."""
    with pytest.raises(ValueError, match="each unit once and the largest first"):
        duration.parse(text)


def test_a_century_is_the_limit() -> None:
    """Event time plus a duration must stay within 64 bits."""
    assert duration.parse("36500d") == duration.LIMIT_US
    with pytest.raises(ValueError, match="at most 36500d"):
        duration.parse("36500d1us")


@given(st.integers(0, duration.LIMIT_US) | st.integers(0, 100_000))
def test_round_trip(us: int) -> None:
    """parse(text(us)) == us."""
    assert duration.parse(duration.text(us)) == us
