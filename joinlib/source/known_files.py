"""The files in the log of a folder, looked up by path and by position.

    {"path": …, "size": …, "mtime_ns": …, "slices": […]}      a file; "skipped": why it was left out
    {"base": slices, "rows": n, "files": n}                   the log begins here: totals of the files before

Files before the base were put away, and folded out of the log. Cost: a binary search and what is returned.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from joinlib.errors import StateError
from joinlib.source.listing import ListedFile, locate
from joinlib.source.log import Entry
from joinlib.source.slices import FileRange, Slice

_FOLDED = 1024  # the fewest entries for which folding the log pays


@dataclass(frozen=True)
class _LoggedFile:
    """A file of the log, and the totals before it."""

    file: ListedFile
    pieces: tuple[FileRange, ...]
    index: int  # number of its first slice
    rows: int  # rows in the files before it


@dataclass(frozen=True)
class _Base:
    """Totals of what was folded out in front of the first file of a log."""

    base: int = 0  # slices
    rows: int = 0
    files: int = 0


class KnownFiles:
    """The log's entries, ready to be looked up by path and by position."""

    def __init__(self, log: Path, exact: bool) -> None:
        self.log = log
        self.exact = exact  # whether weights are exact numbers of rows
        self.seen: list[_LoggedFile] = []  # files with slices or without rows, in the log's order
        self.skipped: dict[str, ListedFile] = {}
        self.slices = self.rows = 0
        self._paths: dict[str, ListedFile] = {}  # the last file of each path
        self._base = _Base()
        self._away = 0  # the first so many files of `seen` were put away

    def holds(self, path: str) -> bool:
        return path in self._paths

    def is_last(self, found: ListedFile) -> bool:
        """Return whether this is the last file of its name, unchanged since it was logged."""
        return self._paths.get(found.path) == found

    @property
    def last(self) -> Collection[ListedFile]:
        """The last file of each name, as it was read."""
        return self._paths.values()

    @property
    def files(self) -> int:
        """The number of files that were ever seen."""
        return self._base.files + len(self.seen)

    @property
    def first(self) -> int:
        """The first slice that the log still has."""
        return self._base.base

    def add(self, entry: Entry) -> None:
        if "base" in entry:
            self._base = _Base(**entry)
            self.slices, self.rows = self._base.base, self._base.rows
            return
        found = _listed(entry)
        if "skipped" in entry:
            self.skipped[found.path] = found
            return
        self.skipped.pop(found.path, None)
        self._paths[found.path] = found
        pieces = tuple(FileRange(*p) for p in entry["slices"])
        self.seen.append(_LoggedFile(found, pieces, self.slices, self.rows))
        self.slices += len(pieces)
        self.rows += sum(p.weight for p in pieces)

    def read(self, before: int, most: int) -> list[ListedFile]:
        """Return at most `most` files, the next to put away, whose slices are all below `before`."""
        rest = islice(self.seen, self._away, self._away + most)
        return [seen.file for seen in rest if seen.index + len(seen.pieces) <= before]

    def put_away(self) -> None:
        """Count the next file as put away."""
        self._away += 1

    def folded(self, entries: Sequence[Entry]) -> list[Entry] | None:
        """Return the log without the files that were put away, or None if folding does not pay.

        `entries` is the log as it is.
        """
        if self._away < _FOLDED or self._away < len(self.seen) // 2:
            return None
        rest = self.seen[self._away :]
        first, rows = (rest[0].index, rest[0].rows) if rest else (self.slices, self.rows)
        base = asdict(_Base(first, rows, self._base.files + self._away))
        files = [e for e in entries if "base" not in e and "skipped" not in e]
        skipped = [e for e in entries if "skipped" in e and self.skipped.get(e["path"]) == _listed(e)]
        return [base, *skipped, *files[self._away :]]

    def between(self, root: Path, start: int, stop: int) -> list[Slice]:
        """Return slices [start, stop). Cost: a binary search and what is returned.

        Raises:
            StateError: The log does not know them.
        """
        if stop > self.slices or (start < stop and start < self._base.base):
            known = f"{self.slices} slices" + (f", from {self._base.base} on" if self._base.base else "")
            asked = f"{start} to {stop}" if self._base.base else stop
            raise StateError(
                f"{self.log}: lists {known}, but {asked} were read; restore the file or start with a new"
                " checkpoint"
            )
        slices: list[Slice] = []
        at = self._at(start)
        while start + len(slices) < stop:
            seen = self.seen[at]
            first = start + len(slices) - seen.index
            slices += (
                self._slice(root, seen, i) for i in range(first, min(stop - seen.index, len(seen.pieces)))
            )
            at += 1
        return slices

    def rows_before(self, start: int) -> int:
        """Return the number of rows in slices [0, start)."""
        if start >= self.slices:
            return self.rows
        seen = self.seen[self._at(start)]
        return seen.rows + sum(p.weight for p in seen.pieces[: start - seen.index])

    def _at(self, start: int) -> int:
        """Return the position of the last file whose first slice is at or before `start`."""
        return max(bisect_right(self.seen, start, key=lambda s: s.index) - 1, 0)

    def _slice(self, root: Path, seen: _LoggedFile, i: int) -> Slice:
        file, piece = seen.file, seen.pieces[i]
        path = str(locate(root, file.path))
        rows = piece.weight if self.exact else None
        return Slice(
            seen.index + i,
            rows,
            piece.weight,
            path,
            file.size,
            file.mtime_ns,
            piece.group,
            piece.start,
            piece.stop,
        )


def _listed(entry: Entry) -> ListedFile:
    return ListedFile(entry["path"], entry["size"], entry["mtime_ns"])
