"""A warm Python process from which all Python processes of a local session are forked.

    session ──► prefork ──fork──► daemon of the tasks ──fork──► workers
                   ▲    ──fork──► the source's driver part, planning, …
                   │    ──fork──► what runs batches without Spark (`direct.serve`)
    JVM ──► stub┘

Spark starts half a dozen Python processes before the first result, one after the other, each with half a
second to two of imports. Here there is one, which imports and compiles everything while the run is planned; a
fork takes milliseconds. It ends with the process that started it, ends a forked process whose stub is gone,
and ends all of them when it ends itself.
"""

import contextlib
import importlib
import json
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from joinlib.lean import lean, loading
from joinlib.spark.boot import stub

_LONGEST = 100  # bytes in the address of a Unix socket
_COMMAND = 15  # characters in the name that a process shows
_ROLES = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
)


@cache
def begin() -> str:
    """Start the prefork, once per process, and return the program for Spark to start as Python.

    That is the real Python where no prefork can run.
    """
    folder = Path(tempfile.mkdtemp(prefix="streamjoin-"))
    address, program = folder / "prefork", folder / "python"
    if len(os.fsencode(address)) > _LONGEST:
        folder.rmdir()
        return sys.executable
    real = [sys.executable, "-IS", stub.__file__]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(real)} "$@"\n')
    program.chmod(0o700)
    # As Spark starts workers: one thread each, and the same hash seed in all.
    given = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
    command = [sys.executable, "-m", __name__, str(folder)]
    # Its own process group: a signal to the owner's group, such as Ctrl-C, is for the owner, which then ends
    # its queries in order.
    begun = subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, **given}, process_group=0)
    _alive.append(begun)
    os.environ[stub.ADDRESS] = str(address)
    return str(program)


# The standard input of each closes when this process ends, for whatever reason.
_alive: list[subprocess.Popen[bytes]] = []


class Prefork:
    """Forks processes for clients of a Unix socket, until its own standard input closes."""

    def __init__(self, address: Path) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(address))
        self._listening.listen(64)  # clients that connect before it is warm wait
        self._forked = set[int]()  # not reaped yet, so their process ids are not reused
        self._events = selectors.PollSelector()
        self._events.register(0, selectors.EVENT_READ)
        self._events.register(self._listening, selectors.EVENT_READ, self._asked)

    def serve(self) -> None:
        """Serve until the owner is gone, then end the forked processes."""
        try:
            while self._round():
                pass
        finally:
            for process in self._forked:
                os.kill(process, signal.SIGTERM)

    def _round(self) -> bool:
        """Handle the pending events; return whether the owner is still there."""
        for key, _ in self._events.select():
            if key.fd == 0:
                return False
            if key.fd in self._events.get_map():  # not closed by an earlier event of this round
                key.data()
        return True

    def _asked(self) -> None:
        asker, _ = self._listening.accept()
        files: list[int] = []
        try:
            size, files, *_ = socket.recv_fds(asker, 8, 3)
            with asker.makefile("rb") as stream:
                order = json.loads(stream.read(int.from_bytes(size, "big")))
            if len(files) == 3:  # fewer arrive when this process has no file descriptors left
                self._fork(asker, files, order)
                return
        except (OSError, ValueError):  # the client ended early, or no process can be forked
            pass
        finally:
            for file in files:
                os.close(file)
        asker.close()  # without an answer the stub runs the real Python itself

    def _fork(self, asker: socket.socket, files: list[int], order: dict[str, Any]) -> None:
        room = os.dup(asker.fileno())  # for `ended`: a forked process runs at once, so it is taken before
        process = os.fork()
        os.close(room)
        if process == 0:
            self._become(asker, files, order)
        try:
            ended = os.pidfd_open(process)
        except OSError:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise
        self._forked.add(process)
        self._events.register(asker, selectors.EVENT_READ, partial(self._left, asker, process))
        self._events.register(ended, selectors.EVENT_READ, partial(self._ended, asker, process, ended))
        with contextlib.suppress(OSError):  # the client has left, which is the next event
            asker.send(stub.FORKED)

    def _left(self, asker: socket.socket, process: int) -> None:
        self._events.unregister(asker)
        os.kill(process, signal.SIGTERM)

    def _ended(self, asker: socket.socket, process: int, ended: int) -> None:
        _, status = os.waitpid(process, 0)
        self._forked.discard(process)
        self._events.unregister(ended)
        os.close(ended)
        with contextlib.suppress(KeyError, OSError):  # the client has left
            self._events.unregister(asker)
            asker.send(bytes([os.waitstatus_to_exitcode(status) & 255]))
        asker.close()

    def _become(self, asker: socket.socket, files: list[int], order: dict[str, Any]) -> NoReturn:
        """Run, in the forked process, the command that the client was started for."""
        code = 1
        try:
            os.close(asker.fileno())
            for key in self._events.get_map().values():
                os.close(key.fd)
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            code = _run(**order)
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001 - nothing above would report it
            traceback.print_exc()
        finally:  # in any case it must not go on as a second prefork
            os._exit(code & 255)


def _run(command: list[str], environment: dict[str, str], folder: str) -> int:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    asked = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [entry for entry in asked if entry and entry not in sys.path]
    with contextlib.suppress(OSError):  # the name is only cosmetic
        Path("/proc/self/comm").write_text(command[-1][-_COMMAND:])
    module = command[0]
    sys.argv = command
    sys.modules.pop(module, None)  # so that it runs again, as the main module
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as Python itself does
        traceback.print_exc()
        return 1
    return 0


def main(folder: Path) -> None:
    try:
        prefork = Prefork(folder / "prefork")
        with loading():
            lean()
            from joinlib.spark.boot.daemon import warm_up

            for role in _ROLES:
                importlib.import_module(role)
        warm_up()
        prefork.serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
