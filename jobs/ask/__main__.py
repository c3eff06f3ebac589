"""`python -m jobs.ask why|whynot FILE CONDITION`: what kubectl's plugin has run in the container of a driver."""

import os
import subprocess
import sys

from jobs.ask.guard import guarded
from joinlib.metric.cgroup import memory

_LAST = 19  # the lowest priority


def main() -> None:
    """Answer a question, and exit as the answer does."""
    os.nice(_LAST)
    command = [sys.executable, "-m", "jobs.ask.answer", *sys.argv[1:]]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        sys.exit(guarded(process, sys.stdin.fileno(), memory))


if __name__ == "__main__":
    main()
