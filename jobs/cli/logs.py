"""Sends the output of Spark, its JVM and its workers into a file, never onto the terminal.

    stdout, stderr of this process and of all it starts ──► pipe ──► a thread ──► spark.log, spark.log.1

Redirecting the descriptors catches what no logging configuration reaches: the JVM's own start-up lines and
the output of Python workers. The file is bounded: it is rotated once when it has reached its size.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_BYTES = 8_000_000
_LAST_WORDS_S = 0.1


@contextlib.contextmanager
def aside(log: Path) -> Iterator[TextIO]:
    """Redirect descriptors 1 and 2 into `log` inside the block; yield the original standard output."""
    _flush()
    kept = os.dup(1), os.dup(2)
    source, sink = os.pipe()
    writer = threading.Thread(target=_copy, args=(source, log), name="log", daemon=True)
    writer.start()
    _point_to(sink, sink)
    os.close(sink)
    try:
        with open(os.dup(kept[0]), "w", buffering=1) as terminal:
            yield terminal
    finally:
        _flush()
        _point_to(*kept)
        for number in kept:
            os.close(number)
        writer.join(_LAST_WORDS_S)  # a JVM that is still going down holds the pipe open


def _point_to(out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _copy(source: int, log: Path) -> None:
    """Copy until the last writer is gone.

    If the disk is full, output is lost, but the writers do not stop.
    """
    while text := os.read(source, 65_536):
        with contextlib.suppress(OSError):
            _append(log, text)
    os.close(source)


def _append(log: Path, text: bytes) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size + len(text) > _BYTES:
        log.replace(log.with_name(f"{log.name}.1"))
    with log.open("ab") as file:
        file.write(text)
