"""What Spark takes for Python on this machine: asks the nursery for a process, hands it its files, and waits for its end.

    python -IS standin.py -m MODULE ARGUMENT…

It loads nothing but the standard library, and runs as the real Python where there is no nursery, or one that cannot fork,
or nothing to fork for.
Signals need no forwarding: the nursery ends the process when this one is gone.
"""

import json
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

ADDRESS = "STREAMJOIN_NURSERY"
FORKED = b"f"  # the first answer; the second is the exit code


def main(arguments: list[str]) -> int:
    """The exit code of the process."""
    address = os.environ.get(ADDRESS)
    if not address or arguments[:1] != ["-m"]:
        _itself(arguments)
    with socket.socket(socket.AF_UNIX) as nursery:
        try:
            nursery.connect(address)
            _ask(nursery, arguments[1:])
            answer = nursery.recv(1)
        except OSError:  # it has ended
            answer = b""
        if answer != FORKED:
            _itself(arguments)
        for number in (0, 1):  # the other ends must hear when the process closes them
            os.close(number)
        code = nursery.recv(1)
        return code[0] if code else 1


def _itself(arguments: list[str]) -> NoReturn:
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - as Spark called it


def _ask(nursery: socket.socket, command: list[str]) -> None:
    order = json.dumps(
        {"command": command, "environment": dict(os.environ), "folder": str(Path.cwd())}
    ).encode()
    socket.send_fds(nursery, [len(order).to_bytes(8, "big")], [0, 1, 2])
    nursery.sendall(order)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
