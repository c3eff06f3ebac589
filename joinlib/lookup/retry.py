"""Retries what may succeed later, with back-off and jitter, so that many waiting tasks do
not return at once.
"""

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from joinlib.errors import NotReady

T = TypeVar("T")
log = logging.getLogger("joinlib.lookup")
_FIRST_S, _MOST_S = 0.1, 5.0


class Passing(Exception):
    """Raised for a transient failure; the text says why."""


def patient(
    attempt: Callable[[], T],
    place: str,
    patience_us: int,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return the result of `attempt`, retried while it raises `Passing`. Waits 0.1 s, doubled up to 5 s.

    Raises:
        NotReady: if it still fails after `patience_us`.
    """
    end, wait = clock() + patience_us / 1e6, _FIRST_S
    while True:
        try:
            return attempt()
        except Passing as reason:
            left = end - clock()
            if left <= 0:
                raise NotReady(
                    f"{place}: {reason}, for {patience_us / 1e6:g} s; run again when it is there, the job goes on where it was"
                ) from None
            log.warning("%s: %s; trying again", place, reason)
            sleep(min(wait * random.uniform(0.5, 1.5), left))
            wait = min(2 * wait, _MOST_S)
