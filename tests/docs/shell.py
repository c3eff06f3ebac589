"""One bash for all blocks of a page: variables, the folder and jobs in the background live on from block to block."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self


class Failed(Exception):
    """A block ended with an error, or not at all; the text is what it printed."""


class Shell:
    """Used as a context manager; whatever still runs at its end is killed. `aside`: a folder for its own files."""

    def __init__(self, folder: Path, aside: Path, environment: Mapping[str, str]) -> None:
        self._aside = aside
        self._blocks = 0
        aside.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-euo", "pipefail"],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    @property
    def _log(self) -> Path:
        return self._aside / "log"

    def run(self, text: str, limit_s: float) -> str:
        """What the commands print on both streams, as a terminal would show it. Raises Failed."""
        self._blocks += 1
        block, done = (self._aside / f"{what}-{self._blocks}" for what in ("block", "done"))
        block.write_text(text)
        before = self._log.stat().st_size
        assert self._process.stdin is not None
        self._process.stdin.write(f". {shlex.quote(str(block))} </dev/null\n: >{shlex.quote(str(done))}\n")
        self._process.stdin.flush()
        end = time.monotonic() + limit_s
        while not done.exists() and self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        printed = self._log.read_bytes()[before:].decode(errors="replace")
        if self._process.poll() is not None:
            raise Failed(f"ends with exit code {self._process.returncode}:\n{printed}")
        if not done.exists():
            raise Failed(f"takes more than {limit_s:.0f} s; so far:\n{printed}")
        return printed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
