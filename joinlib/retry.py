"""Repeats a call that may succeed later, for as long as it was given patience. The loop is tenacity's."""

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_exponential

T = TypeVar("T")
Pause = Callable[[RetryCallState], float]  # seconds before the next attempt: one of tenacity's, or its like


def backoff(first_s: float, most_s: float) -> Pause:
    """Return pauses that double, with jitter, so that many waiting tasks do not return at once."""
    doubled = wait_exponential(multiplier=first_s, max=most_s)
    return lambda state: doubled(state) * random.uniform(0.5, 1.5)


def patiently(
    call: Callable[[float], T],
    passing: Callable[[BaseException], bool],
    patience_s: float,
    pause: Pause,
    sleep: Callable[[float], Any] = time.sleep,
    warn: Callable[[BaseException], None] = lambda error: None,
) -> T:
    """Return the result of `call`, repeated while it fails with an error that may pass.

    The last attempt is made when the patience is over; its error is raised.

    Args:
        call: Its argument is how many seconds are left.
        passing: Whether the same call may succeed after this error.
        patience_s: How long to repeat it.
        pause: How long to wait between two attempts.
        sleep: Waits for so many seconds.
        warn: Is told of each error that is not raised.
    """
    end = time.monotonic() + patience_s

    def pause_s(state: RetryCallState) -> float:
        return min(pause(state), patience_s - (state.seconds_since_start or 0.0))

    def repeated(state: RetryCallState) -> None:
        if state.outcome is not None and (error := state.outcome.exception()) is not None:
            warn(error)

    retrying = Retrying(
        retry=retry_if_exception(passing),
        stop=stop_after_delay(patience_s),
        wait=pause_s,
        sleep=sleep,
        before_sleep=repeated,
        reraise=True,
    )
    return retrying(lambda: call(end - time.monotonic()))
