"""The program that Spark starts as Python on this machine: the prefork forks a process in its place.

    python -IS stub.py -m MODULE ARGUMENT…

It passes its standard files to the forked process and waits for its end. It imports nothing but the standard
library, and runs as the real Python where there is no prefork, the prefork cannot fork, or the arguments name
no module. Signals need no forwarding: the prefork ends the process when the stub is gone.
"""

import json
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

ADDRESS = "STREAMJOIN_PREFORK"
FORKED = b"f"  # the first answer; the second is the exit code


def main(arguments: list[str]) -> int:
    """Run the command in a forked process and return its exit code."""
    address = os.environ.get(ADDRESS)
    if not address or arguments[:1] != ["-m"]:
        _itself(arguments)
    with socket.socket(socket.AF_UNIX) as prefork:
        try:
            prefork.connect(address)
            _ask(prefork, arguments[1:])
            answer = prefork.recv(1)
        except OSError:  # the prefork has ended
            answer = b""
        if answer != FORKED:
            _itself(arguments)
        for number in (0, 1):  # so that the other ends see it when the process closes them
            os.close(number)
        code = prefork.recv(1)
        return code[0] if code else 1


def _itself(arguments: list[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - as Spark called it


def _ask(prefork: socket.socket, command: list[str]) -> None:
    order = json.dumps(
        {"command": command, "environment": dict(os.environ), "folder": str(Path.cwd())}
    ).encode()
    socket.send_fds(prefork, [len(order).to_bytes(8, "big")], [0, 1, 2])
    prefork.sendall(order)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
