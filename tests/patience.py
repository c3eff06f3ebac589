"""How tests wait for what surely comes.

The bound is only there to end a test that hangs, so it says nothing of speed: two cores have a cluster, servers and
the other tests beside, and compile what no run before has compiled.
"""

import time
from collections.abc import Callable

HUNG_S = 120.0


def until(true: Callable[[], object], what: str = "what was waited for") -> None:
    end = time.monotonic() + HUNG_S
    while not true():
        assert time.monotonic() < end, f"not within {HUNG_S:.0f} s: {what}"
        time.sleep(0.02)
