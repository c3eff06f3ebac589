"""A Python that has imported and compiled everything, from which all Python processes of a local session are forked.

    session ──► nursery ──fork──► daemon of the tasks ──fork──► workers
                   ▲    ──fork──► the source's driver part, planning, …
    JVM ──► standin┘

Spark starts half a dozen Python processes before the first result, one after the other, each with half a second to two of
imports. Here there is one, which imports while the JVM starts; a fork takes milliseconds. It ends with whoever started it,
and ends a process whose stand-in is gone, and all of them when it ends itself.
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

from joinlib.spark import standin

_LONGEST = 100  # of the address of a Unix socket
_COMMAND = 15  # of the name that a process shows
_ROLES = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
)


@cache
def begin() -> str:
    """The program for Spark to start as Python: once in a process. The real one where there cannot be a nursery."""
    folder = Path(tempfile.mkdtemp(prefix="streamjoin-"))
    address, program = folder / "nursery", folder / "python"
    if len(os.fsencode(address)) > _LONGEST:
        folder.rmdir()
        return sys.executable
    real = [sys.executable, "-IS", standin.__file__]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(real)} "$@"\n')
    program.chmod(0o700)
    # As Spark would start workers: one thread each, and hashes that are the same in all.
    given = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
    command = [sys.executable, "-m", __name__, str(folder)]
    # A signal to the owner's group, from a terminal or whoever runs it, is for the owner: it ends queries in order.
    begun = subprocess.Popen(command, stdin=subprocess.PIPE, env={**os.environ, **given}, process_group=0)
    _alive.append(begun)
    os.environ[standin.ADDRESS] = str(address)
    return str(program)


_alive: list[
    subprocess.Popen[bytes]
] = []  # its standard input closes when this process ends, however it ends


class Nursery:
    """Forks processes for those who ask at a socket, until its own standard input closes."""

    def __init__(self, address: Path) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(address))
        self._listening.listen(64)  # who comes before it is warm waits
        self._forked = set[int]()  # and not reaped: nobody else has their numbers
        self._events = selectors.PollSelector()
        self._events.register(0, selectors.EVENT_READ)
        self._events.register(self._listening, selectors.EVENT_READ, self._asked)

    def serve(self) -> None:
        """Returns when the owner is gone; whom it has forked ends then."""
        try:
            while self._round():
                pass
        finally:
            for process in self._forked:
                os.kill(process, signal.SIGTERM)

    def _round(self) -> bool:
        """Whether the owner is there, once what has happened is done."""
        for key, _ in self._events.select():
            if key.fd == 0:
                return False
            if key.fd in self._events.get_map():  # not closed by an event before this one
                key.data()
        return True

    def _asked(self) -> None:
        asker, _ = self._listening.accept()
        files: list[int] = []
        try:
            size, files, *_ = socket.recv_fds(asker, 8, 3)
            with asker.makefile("rb") as stream:
                order = json.loads(stream.read(int.from_bytes(size, "big")))
            if len(files) == 3:  # else there was no room for them
                self._fork(asker, files, order)
                return
        except (OSError, ValueError):  # it ended before it had asked, or there is no room for a process
            pass
        finally:
            for file in files:
                os.close(file)
        asker.close()  # without an answer: it runs as itself, if it still does

    def _fork(self, asker: socket.socket, files: list[int], order: dict[str, Any]) -> None:
        process = os.fork()
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
        with contextlib.suppress(OSError):  # it has left, which is the next event
            asker.send(standin.FORKED)

    def _left(self, asker: socket.socket, process: int) -> None:
        self._events.unregister(asker)
        os.kill(process, signal.SIGTERM)

    def _ended(self, asker: socket.socket, process: int, ended: int) -> None:
        _, status = os.waitpid(process, 0)
        self._forked.discard(process)
        self._events.unregister(ended)
        os.close(ended)
        with contextlib.suppress(KeyError, OSError):  # it has left
            self._events.unregister(asker)
            asker.send(bytes([os.waitstatus_to_exitcode(status) & 255]))
        asker.close()

    def _become(self, asker: socket.socket, files: list[int], order: dict[str, Any]) -> NoReturn:
        """In the process that was forked: what the asker was to be."""
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
        except BaseException:  # noqa: BLE001 - there is nobody else to tell it
            traceback.print_exc()
        finally:  # whatever happens, it must not go on as a second nursery
            os._exit(code & 255)


def _run(command: list[str], environment: dict[str, str], folder: str) -> int:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    asked = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [entry for entry in asked if entry and entry not in sys.path]
    with contextlib.suppress(OSError):  # it is only how it looks
        Path("/proc/self/comm").write_text(command[-1][-_COMMAND:])
    module = command[0]
    sys.argv = command
    sys.modules.pop(module, None)  # it is to run once more, as the main one
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
        nursery = Nursery(folder / "nursery")
        from joinlib.spark.daemon import warm_up

        for role in _ROLES:
            importlib.import_module(role)
        warm_up()
        nursery.serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
