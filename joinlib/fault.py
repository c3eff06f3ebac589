"""Named points at which a test may end this process: STREAMJOIN_FAULT="segment:3" kills it after batch 3's first segment.

The law under test: kill any process at any moment and run again, the output is the same. Without the variable a point
costs one comparison. Points: segment, index, joined (worker); staged, publish, published (driver).
"""

import os
import signal

_FAULT = os.environ.get("STREAMJOIN_FAULT", "")


def point(name: str, batch: int) -> None:
    """Dies here by SIGKILL when the environment says so."""
    if _FAULT and f"{name}:{batch}" == _FAULT:
        os.kill(os.getpid(), signal.SIGKILL)
