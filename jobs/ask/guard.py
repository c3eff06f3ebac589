"""Watches over a process that answers in a driver's container: the driver must not suffer from a question.

It ends the process

    before the container's memory is full     of which the kernel would make room by killing the driver too
    when nobody waits for the answer          standard input has ended: exec does not pass on Ctrl-C

It is a process of its own, a small one, because the one that answers may be in compiled code for seconds.
"""

import os
import select
import subprocess
import sys
from collections.abc import Callable

from joinlib.deploy import MI
from joinlib.metric.cgroup import ContainerMemory

LEFT = 64 * MI  # stay free; more than is taken between two looks
_LOOK_S = 0.05
_ENDED = 1  # exit code: asking again may help


def guarded(process: subprocess.Popen[bytes], source: int, memory: Callable[[], ContainerMemory]) -> int:
    """Wait for a process; return its exit code, or 1 if it had to be ended.

    Args:
        process: It answers.
        source: The file descriptor of standard input.
        memory: Returns the container's memory.
    """
    while (code := process.poll()) is None:
        if _ended(source):
            process.kill()
            return _ENDED
        if (reason := scarce(memory())) is not None:
            process.kill()
            print(reason, file=sys.stderr)
            return _ENDED
    return code if code >= 0 else 128 - code  # a signal, as shells say it


def scarce(found: ContainerMemory) -> str | None:
    """Return what to say if the container's memory is too full to go on; else None."""
    if found.limit is None or found.room is None or found.room >= LEFT:
        return None
    return (
        f"the driver's container has less than {LEFT // MI} MiB left of its {found.limit // MI} MiB, which the driver may"
        " need, so the question was given up; ask for fewer rows, raise driver.memory, or ask where the job's volumes are"
        " mounted, by `streamjoin why`"
    )


def _ended(source: int) -> bool:
    """Wait a moment; return whether standard input has ended. What comes by it means nothing."""
    return bool(select.select([source], [], [], _LOOK_S)[0]) and not os.read(source, 4096)
