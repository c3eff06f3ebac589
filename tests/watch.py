"""A server of a test ends with the process that started it, however that ends, whichever of its threads has called."""

import subprocess


class Watch:
    """Sends `signal` to the process `pid` once this process is gone, and with it the pipe. `off`: no longer."""

    def __init__(self, pid: int, signal: str) -> None:
        end = ["sh", "-c", 'cat; kill -"$1" "$0"', str(pid), signal]
        self._process = subprocess.Popen(end, stdin=subprocess.PIPE, start_new_session=True)

    def off(self) -> None:
        self._process.kill()
        self._process.communicate()
