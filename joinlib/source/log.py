"""A log of entries in order: an append-only file of JSON lines, on disk before `append` returns.

Each line is `["checksum", entry]`. A checksum covers the entry and every line before it, so that a
line which is altered, lost, duplicated or written by another process is detected. An incomplete last
line, left by a crash, is cut off: `append` had not returned. Loading costs a pass over the file,
appending one write and one fsync.
"""

import json
import os
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from joinlib.errors import StateError
from joinlib.files import sync

Entry = dict[str, Any]  # JSON: strings, integers, lists


class Log:
    """The entries of one file, which is read on first use.

    mends: whether an incomplete last line is cut off. Who only reads leaves it: another process may be writing it.
    """

    def __init__(self, path: Path, mends: bool = True) -> None:
        self.path = path
        self._mends = mends
        self._checksum = 0
        self._size = 0

    @cached_property
    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        raw = self.path.read_bytes() if self.path.exists() else b""
        self._size = raw.rfind(b"\n") + 1
        entries = [self._parsed(i, line) for i, line in enumerate(raw[: self._size].splitlines(), 1)]
        if self._size < len(raw) and self._mends:
            os.truncate(self.path, self._size)
        return entries

    def append(self, entries: Sequence[Entry]) -> None:
        """Add entries at the end. After a crash, all of them or the first few are kept."""
        known = self.entries
        checksum, lines = self._checksum, []
        for entry in entries:
            checksum = _checksum(entry, checksum)
            lines.append(json.dumps([f"{checksum:08x}", entry]) + "\n")
        if lines:
            self._write("".join(lines).encode())
            self._checksum = checksum
            known.extend(entries)

    def replace(self, entries: Sequence[Entry]) -> None:
        """Replace all entries by a shorter list that says the same.

        The old file stays until the new one is complete.
        """
        aside = Log(self.path.with_name(f".{self.path.name}.new"))
        aside.path.unlink(missing_ok=True)
        aside.append(entries)
        aside.path.rename(self.path)
        sync([self.path.parent])
        self._checksum, self._size = aside._checksum, aside._size
        self.entries[:] = entries

    def _parsed(self, number: int, line: bytes) -> Entry:
        try:
            checksum, entry = json.loads(line)
            self._checksum = _checksum(entry, self._checksum)
            if checksum != f"{self._checksum:08x}":
                raise ValueError("the checksum differs")
        except (ValueError, TypeError) as e:
            raise StateError(
                f"{self.path}, line {number}: damaged, so positions in it mean nothing; restore the file or"
                " start with a new checkpoint"
            ) from e
        if not isinstance(entry, dict):
            raise StateError(f"{self.path}, line {number}: not an entry of an input's log")
        return entry

    def _write(self, lines: bytes) -> None:
        fresh = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != self._size:
                raise StateError(
                    f"{self.path}: changed by somebody else; two runs must not share a checkpoint"
                )
            try:
                rest = memoryview(lines)
                while rest:  # a write may be short
                    rest = rest[os.write(file.fileno(), rest) :]
                os.fsync(file.fileno())
            except OSError:  # a full disk: remove the incomplete line, so that a later attempt can go on
                os.ftruncate(file.fileno(), self._size)
                raise
        if fresh:
            sync([self.path.parent])
        self._size += len(lines)


def _checksum(entry: Entry, before: int) -> int:
    return zlib.crc32(json.dumps(entry, sort_keys=True).encode(), before)
