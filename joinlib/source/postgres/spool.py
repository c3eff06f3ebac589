"""Rows on the disk, and the log of what lies there.

    sources/postgres/SLOT/log.jsonl                what was spooled, and how far the slot's log was read
    sources/postgres/SLOT/INPUT-000000000042.arrow the rows of an input of one peek: Arrow's file format, lz4

    {"slot": name}                                 the slot is ours, or about to be made
    {"snapshot": text, "until": n, ...}            the first rows: which transactions they hold
    {"number": n, "at": n, "files": {input: [rows of each batch]}}
    {"base": {input: [slices, rows]}, ...}         totals of what was deleted, in front of a log that was folded

A slice is a record batch of a file. Law: files are on the disk before the entry that names them, and the entry
before the slot moves. A file that no entry names is written again. Files are deleted once no batch will read
them (`forget`).
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from joinlib.errors import StateError
from joinlib.files import sync, whole
from joinlib.source.log import Entry, Log
from joinlib.source.postgres.decode import Snapshot
from joinlib.source.slices import Slice

_FOLDED = 1024  # the fewest entries for which folding the log pays
_EMPTY = Snapshot(0, 0, (), 0)


class PeekFiles:
    """The files of one peek, while they are written: one for each input that has rows."""

    def __init__(self, folder: Path, number: int) -> None:
        self.batches: dict[str, list[int]] = {}
        self._folder, self._number = folder, number
        self._stack = ExitStack()
        self._writers: dict[str, Any] = {}
        self._paths: list[Path] = []

    def add(self, name: str, rows: pa.RecordBatch) -> None:
        """Write rows of an input."""
        if name not in self._writers:
            aside = self._stack.enter_context(whole(path(self._folder, name, self._number)))
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writers[name] = pa.ipc.new_file(str(aside), rows.schema, options=options)
            self._paths.append(aside)
        self._writers[name].write_batch(rows)
        self.batches.setdefault(name, []).append(rows.num_rows)

    def close(self) -> None:
        """Give the files their names; they are on the disk when this returns."""
        for writer in self._writers.values():
            writer.close()
        if self._paths:
            sync(self._paths)
            self._stack.close()
            sync([self._folder])

    def drop(self, error: BaseException) -> None:
        """Leave no file."""
        self._stack.__exit__(type(error), error, error.__traceback__)


@contextmanager
def files(folder: Path, number: int) -> Iterator[PeekFiles]:
    """Write the files of one peek. They are on the disk at the end of the block, unless it raised."""
    folder.mkdir(parents=True, exist_ok=True)
    made = PeekFiles(folder, number)
    try:
        yield made
    except BaseException as error:
        made.drop(error)
        raise
    made.close()


def path(folder: Path, name: str, number: int) -> Path:
    """Return the file of an input's rows of one peek."""
    return folder / f"{name}-{number:012d}.arrow"


@dataclass(frozen=True)
class Chunk:
    """The rows of an input of one peek."""

    number: int
    first: int  # number of its first slice
    before: int  # rows in the slices before
    rows: tuple[int, ...]  # of each slice


@dataclass
class Spooled:
    """What of one input lies in the spool."""

    slices: int = 0
    rows: int = 0
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def base(self) -> tuple[int, int]:
        """The first slice that is there, and the rows before it."""
        return (self.chunks[0].first, self.chunks[0].before) if self.chunks else (self.slices, self.rows)

    def add(self, number: int, rows: Sequence[int]) -> None:
        self.chunks.append(Chunk(number, self.slices, self.rows, tuple(rows)))
        self.slices += len(rows)
        self.rows += sum(rows)

    def at(self, start: int) -> int:
        """Return the position of the last chunk that begins at or before a slice."""
        return max(bisect_right(self.chunks, start, key=lambda c: c.first) - 1, 0)


class SlotSpool:
    """The log of one slot, ready to be looked up."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self._names = folder, tuple(names)
        self._log = Log(folder / "log.jsonl")
        self.made = False  # the slot is ours, or about to be made
        self.snapshot: Snapshot | None = None
        self.at = 0  # transactions that were committed before were read
        self.number = 0  # of the next peek
        self.inputs = {name: Spooled() for name in names}
        self._dropped = 0  # entries all of whose files were deleted
        for entry in self._log.entries:
            self._note(entry)

    def make(self, slot: str) -> None:
        """Note that the slot is ours."""
        self.append({"slot": slot, "base": {name: [0, 0] for name in self._names}})

    def append(self, entry: Entry) -> None:
        """Add an entry; it is on the disk when this returns."""
        self._log.append([entry])
        self._note(entry)

    def between(self, name: str, start: int, stop: int) -> list[Slice]:
        """Return slices [start, stop) of an input.

        Raises:
            StateError: They are not there.
        """
        known = self.inputs[name]
        if stop > known.slices or (start < stop and start < known.base[0]):
            raise StateError(
                f"{self._log.path}: lists slices {known.base[0]} to {known.slices} of {name}, but {start} to"
                f" {stop} were read; restore the folder or start with a new checkpoint and a new slot"
            )
        found: list[Slice] = []
        at = known.at(start)
        while start + len(found) < stop:
            chunk = known.chunks[at]
            skipped = start + len(found) - chunk.first
            where = str(path(self.folder, name, chunk.number))
            for i, rows in list(enumerate(chunk.rows))[skipped : stop - chunk.first]:
                found.append(Slice(chunk.first + i, rows, max(rows, 1), where, group=i, stop=rows))
            at += 1
        return found

    def rows_before(self, name: str, start: int) -> int:
        """Return the number of rows in slices [0, start) of an input."""
        known = self.inputs[name]
        if start >= known.slices or not known.chunks:
            return known.rows
        chunk = known.chunks[known.at(start)]
        return chunk.before + sum(chunk.rows[: max(start - chunk.first, 0)])

    def forget(self, name: str, before: int) -> None:
        """Delete the files of an input all of whose slices are below `before`; fold the log if that pays."""
        known = self.inputs[name]
        done = 0
        while done < len(known.chunks) and known.chunks[done].first + len(known.chunks[done].rows) <= before:
            path(self.folder, name, known.chunks[done].number).unlink(missing_ok=True)
            done += 1
        del known.chunks[:done]
        self._dropped += done
        if self._dropped >= _FOLDED:
            self._fold()

    def _fold(self) -> None:
        """Replace the log by one that knows only files that are there."""
        held = self.snapshot or _EMPTY
        base: Entry = {
            "slot": "", "base": {name: list(known.base) for name, known in self.inputs.items()},
            "snapshot": held.text, "until": held.until, "at": self.at, "number": self.number - 1,
        }  # fmt: skip
        entries: dict[int, Entry] = {}
        for name, known in self.inputs.items():
            for chunk in known.chunks:
                entry = entries.setdefault(chunk.number, {"number": chunk.number, "files": {}})
                entry["files"][name] = list(chunk.rows)
        self._log.replace([base, *(entries[n] for n in sorted(entries))])
        self._dropped = 0

    def _note(self, entry: Entry) -> None:
        if "slot" in entry:
            self.made = True
            if set(entry["base"]) != set(self._names):
                raise StateError(
                    f"{self._log.path}: the slot was read for {', '.join(entry['base'])}, and now for"
                    f" {', '.join(self._names)}; give new inputs a slot of their own, or start with a new checkpoint"
                    " and a new slot"
                )
            self.inputs = {name: Spooled(*entry["base"][name]) for name in self._names}
        if "snapshot" in entry:
            self.snapshot = Snapshot.parsed(entry["snapshot"], entry["until"])
        self.at = max(self.at, entry.get("at", 0))
        self.number = max(self.number, entry.get("number", -1) + 1)
        for name, rows in entry.get("files", {}).items():
            self.inputs[name].add(entry["number"], rows)
