"""A folder of files, which may grow while the job runs, as an input.

`discover` lists the folder, cuts each new file into slices, and logs it. The log's order is
the input's order, so a file whose name sorts before older ones is still read. Paths in the log
are relative to the folder.

Files that stay must be remembered as long as the checkpoint lives. Those that are put away after reading can
be forgotten: the log is folded when most of it is about such files. Files are put away first: a crash in
between leaves too much in the log, but never lets a file be read twice.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from joinlib.apart import apart
from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.files import sync
from joinlib.source import done, parquet, text
from joinlib.source.changes import RowChanges
from joinlib.source.fit import Fit, fitted
from joinlib.source.fresh import Unreadable
from joinlib.source.known_files import KnownFiles
from joinlib.source.listing import ListedFile, file_at, listing, locate
from joinlib.source.log import Entry, Log
from joinlib.source.parse import CsvFormat
from joinlib.source.slices import FileRange, Refused, Slice, SliceReader

if TYPE_CHECKING:
    from joinlib.spec.inputs import Done, Format, OnBadFile, Order

_NUMBERED = re.compile(r" \(row \d+ of those\)")  # in the words of an error about one row
_AT_ONCE = 1000  # files put away per batch


@dataclass(frozen=True)
class FilesConfig:
    """Configuration of an input of files: its folder, and how files are read."""

    path: Path  # a folder, or one file
    format: "Format"
    order_by: "Order"  # of the files of one listing; of equally old ones by name
    on_bad_file: "OnBadFile"  # an unreadable file stops the job, or is logged, counted and left out
    csv: CsvFormat
    done: "Done"  # what becomes of a file that was read
    archive: Path | None  # done: archive
    changes: RowChanges | None  # how rows say that they came or went; None: they only come


@dataclass(frozen=True)
class FileReader(SliceReader):
    """Reads slices of files of one format and schema."""

    config: FilesConfig
    schema: pa.Schema
    refused: list[Refused] | None = None  # takes rows that cannot be read; None: they are an error

    def read_many(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        how = self.config.changes
        if how is None:
            return (rows for _, rows in self._placed(slices, columns, self.schema))
        want = pa.schema([self.schema.field(c) for c in columns])
        found = self._placed(slices, how.read(columns), how.readable(self.schema))
        changed = (self._kept(how.changed, place, rows, want) for place, rows in found)
        return (rows for rows in changed if rows.num_rows)

    def located(self, slice: Slice, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, I64]]:
        """Yield the rows of one slice with their numbers in the file; -1 where some of its rows were left out
        that are no lines.
        """
        first = len(self.refused or ())
        found = list(self.read(slice, columns))
        if self.config.format == "parquet":
            numbers = parquet.numbers(slice)
        else:
            left_out = {one.at for one in (self.refused or ())[first:] if one.at is not None}
            numbers = text.numbers(slice, self._csv, left_out)
        ends = np.cumsum([0, *(rows.num_rows for rows in found)])
        if ends[-1] != len(numbers):
            numbers = np.full(ends[-1], -1)
        for at, rows in enumerate(found):
            yield rows, numbers[ends[at] : ends[at + 1]]

    def _kept(self, fit: Fit, place: str, rows: pa.RecordBatch, want: pa.Schema) -> pa.RecordBatch:
        """Return rows as `fit` makes them, without those that do not fit, if such are kept."""
        if self.refused is None:
            return fit(place, rows, want)
        _, made, bad = apart(rows, lambda some: fit(place, some, want), InputError)
        path = place.partition(", rows ")[0]
        for one in bad:
            reason = _NUMBERED.sub("", str(one.error).removeprefix(f"{place}: "))
            self.refused.append(Refused(path, None, None, reason, row=rows.slice(one.at, 1)))
        return fit(place, rows.slice(0, 0), want) if made is None else made

    def cut(self, path: Path) -> list[FileRange]:
        """Cut a file into ranges.

        Raises:
            Unreadable: The file is damaged or still being written.
            InputError: Its columns do not fit the schema.
        """
        if self.config.format == "parquet":
            return parquet.cut(path, self.schema)
        return text.cut(path, self.schema, self._csv, text.SLICE_BYTES)

    def pieces(self, slice: Slice, count: int) -> list[Slice]:
        return parquet.pieces(slice, count) if self.config.format == "parquet" else [slice]

    def together(self, one: Slice, following: Slice) -> bool:
        return self.config.format == "parquet" and (one.path, one.group) == (following.path, following.group)

    def _placed(
        self, slices: Sequence[Slice], columns: Sequence[str], schema: pa.Schema
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of slices in order, each batch with its place."""
        fit = fitted if self.refused is None else partial(self._kept, fitted)
        if self.config.format == "parquet":
            return parquet.read_many(slices, columns, schema, fit)
        return text.read_many(slices, columns, schema, self._csv, fit, self.refused)

    @property
    def _csv(self) -> CsvFormat | None:
        return self.config.csv if self.config.format == "csv" else None


class FileInput:
    """The input over one folder and one log. Making it reads nothing yet."""

    def __init__(self, config: FilesConfig, schema: pa.Schema, log: Log) -> None:
        self.reader: FileReader = FileReader(config, schema)
        self._config = config
        self._log = log
        self._left: set[Path] = set()  # folders that files were taken from since the log was last folded

    def discover(self) -> int:
        known = self._known
        # Where files are put away, few are left to compare, and a name may be used again.
        holds = known.holds if self._config.done == "keep" else _nothing
        found = listing(self._config.path, self._config.order_by, holds)
        entries = [e for f in found if not known.is_last(f) and (e := self._entry(f))]
        self._log.append(entries)
        for entry in entries:
            known.add(entry)
        return known.slices

    def slices(self, start: int, stop: int) -> list[Slice]:
        return self._known.between(self._config.path, start, stop)

    @property
    def kept(self) -> tuple[int, int]:
        return self._known.first, self._known.slices

    @property
    def left_out(self) -> list[str]:
        """The files that could not be read and were left out."""
        return [str(locate(self._config.path, name)) for name in self._known.skipped]

    def rewritten(self) -> Iterator[tuple[ListedFile, ListedFile]]:
        """Yield the files that have another size than when they were read, each as it was and as it is. O(files)."""
        for was in self._known.last if self._config.done == "keep" else ():
            now = file_at(self._config.path, was.path)
            if now is not None and now.size != was.size:
                yield was, now

    def forget(self, before: int) -> None:
        """Put away files that no batch will read again: at most so many at once that no batch takes long."""
        if self._config.done == "keep":
            return
        known = self._known
        for file in known.read(before, _AT_ONCE):
            self._left.add(done.put_away(self._config.path, file, self._config.archive))
            known.put_away()
        if (entries := known.folded(self._log.entries)) is not None:
            # A file that a power cut brings back, and that is no longer in the log, would be read again.
            sync(folder for folder in self._left if folder.exists())
            self._left.clear()
            self._log.replace(entries)
            self._known = self._load()

    def lag(self, start: int = 0) -> dict[str, int]:
        known = self._known
        read = known.rows_before(start)
        return {
            "slices": known.slices - start,
            "rows": known.rows - read,
            "read": read,
            "files": known.files,
            "skipped": self.skipped,
        }

    def rows_before(self, slices: int) -> int:
        """Return the number of rows in the first `slices` slices: exact for Parquet, otherwise estimated."""
        return self._known.rows_before(slices)

    @property
    def skipped(self) -> int:
        """The number of files that were left out because they could not be read."""
        return len(self._known.skipped)

    @cached_property
    def _known(self) -> KnownFiles:
        return self._load()

    def _load(self) -> KnownFiles:
        known = KnownFiles(self._log.path, exact=self._config.format == "parquet")
        for entry in self._log.entries:
            known.add(entry)
        return known

    def _entry(self, found: ListedFile) -> Entry | None:
        """Return the log entry of a new file, or None if it is gone or was skipped before, unchanged."""
        if self._known.skipped.get(found.path) == found:
            return None
        path = locate(self._config.path, found.path)
        entry: Entry = {**asdict(found), "slices": []}
        try:
            pieces = self.reader.cut(path)
            if file_at(self._config.path, found.path) != found:
                raise Unreadable("still being written")
            entry["slices"] = [astuple(p) for p in pieces]
        except FileNotFoundError:
            return None
        except (Unreadable, OSError, ValueError) as e:
            if self._config.on_bad_file == "fail":
                raise InputError(
                    f"{path}: {e}; write files under a name that begins with a dot and rename them when they"
                    " are whole, or set `onBadFile: skip`"
                ) from e
            entry["skipped"] = str(e)
        return entry


def _nothing(_: str) -> bool:
    return False
