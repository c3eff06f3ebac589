"""Ports for servers that listen in processes of their own.

They lie below those that the kernel gives to whoever asks for none by number: one of these could be a connection's
before the server that was told of it listens. No two tests get the same, in whichever process they run.
"""

import errno
import random
import socket

_PORTS = range(24_000, 30_000)  # above what clusters listen at, below their node ports
_given: list[socket.socket] = []  # their names are this process's until it ends


def free_port() -> int:
    """One that nobody listens at, and that no other call returns while this process lives."""
    return next(port for port in random.sample(_PORTS, len(_PORTS)) if _take(port) and _is_free(port))


def _take(port: int) -> bool:
    """By a name that the kernel gives to one process, in a network as ports are."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0streamjoin-tests-{port}")
    except OSError as error:
        name.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    _given.append(name)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("", port))
        except OSError:
            return False
        return True
