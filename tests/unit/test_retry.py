"""A call is repeated while its errors may pass, and for no longer than it was given patience."""

import time
from collections.abc import Callable

import pytest
from tenacity import wait_fixed

from joinlib.retry import backoff, patiently


class Failing:
    """Fails so many times, then returns how many seconds were left each time."""

    def __init__(self, times: int, error: Exception) -> None:
        self.times, self.error = times, error
        self.left: list[float] = []

    def __call__(self, left: float) -> list[float]:
        self.left.append(left)
        if len(self.left) <= self.times:
            raise self.error
        return self.left


def passing(error: BaseException) -> bool:
    return isinstance(error, TimeoutError)


def test_it_is_repeated_until_it_succeeds() -> None:
    """Whoever wants to know is told of each failure; each attempt knows how long it may take."""
    slept: list[float] = []
    warned: list[str] = []
    left = patiently(
        Failing(3, TimeoutError("busy")),
        passing,
        60.0,
        wait_fixed(0.25),
        slept.append,
        lambda error: warned.append(str(error)),
    )
    assert slept == [0.25] * 3 and warned == ["busy"] * 3
    assert len(left) == 4 and 60 >= left[0] > left[-1] > 59


def test_other_errors_are_raised_at_once() -> None:
    """Trying again would not help."""
    call = Failing(9, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        patiently(call, passing, 60.0, wait_fixed(0.0), _never)
    assert len(call.left) == 1


def test_an_interrupt_is_not_repeated() -> None:
    """Ctrl-C ends a call that is being repeated."""

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        patiently(interrupted, passing, 60.0, wait_fixed(0.0), _never)


def test_the_last_attempt_is_at_the_end() -> None:
    """A pause that would outlast the patience is cut short, and the last error is raised as it is."""
    call, error, warned = Failing(9, TimeoutError("still busy")), None, []
    began = time.monotonic()
    try:
        patiently(call, passing, 0.3, wait_fixed(0.2), warn=warned.append)
    except TimeoutError as raised:
        error = raised
    assert error is call.error
    assert 0.3 <= time.monotonic() - began < 5
    assert len(call.left) > 1 and call.left[-1] <= 0
    assert len(warned) == len(call.left) - 1, "the last one is raised"


def test_without_patience_there_is_one_attempt() -> None:
    """It is made, whatever it may cost."""
    call = Failing(9, TimeoutError())
    with pytest.raises(TimeoutError):
        patiently(call, passing, 0.0, wait_fixed(0.0), _never)
    assert len(call.left) == 1


def test_pauses_double_and_differ() -> None:
    """From the first to the longest, each by up to a half more or less."""
    slept: list[float] = []
    patiently(Failing(9, TimeoutError()), passing, 600.0, backoff(0.1, 5.0), slept.append)
    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    ratios = [pause / usual for pause, usual in zip(slept, expected, strict=True)]
    assert all(0.5 <= ratio <= 1.5 for ratio in ratios)
    assert len(set(ratios)) > 1


_never: Callable[[float], None] = pytest.fail  # type: ignore[assignment]
