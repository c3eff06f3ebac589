"""Which slices does the log of a folder hold, by position? Cost: a binary search and what is returned."""

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from joinlib.errors import StateError
from joinlib.source.listing import Found, locate
from joinlib.source.log import Entry
from joinlib.source.slices import Piece, Slice


@dataclass(frozen=True)
class _Seen:
    """A file of the log and what lies before it."""

    file: Found
    pieces: tuple[Piece, ...]
    index: int  # of its first slice
    rows: int  # of the files before it


class Known:
    """The log's entries, ready to be looked up by path and by position."""

    def __init__(self, log: Path, exact: bool) -> None:
        self.log = log
        self.exact = exact  # weights are numbers of rows
        self.seen: list[_Seen] = []  # files with slices or without rows, in the log's order
        self.skipped: dict[str, Found] = {}
        self.slices = self.rows = 0
        self._paths: set[str] = set()

    def holds(self, path: str) -> bool:
        return path in self._paths

    def add(self, entry: Entry) -> None:
        found = Found(entry["path"], entry["size"], entry["mtime_ns"])
        if "skipped" in entry:
            self.skipped[found.path] = found
            return
        self.skipped.pop(found.path, None)
        self._paths.add(found.path)
        pieces = tuple(Piece(*p) for p in entry["slices"])
        self.seen.append(_Seen(found, pieces, self.slices, self.rows))
        self.slices += len(pieces)
        self.rows += sum(p.weight for p in pieces)

    def between(self, root: Path, start: int, stop: int) -> list[Slice]:
        """Slices [start, stop). Cost: a binary search and what is returned."""
        if stop > self.slices:
            raise StateError(
                f"{self.log}: knows {self.slices} slices, {stop} were read; restore the file"
                " or start with a new checkpoint"
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
        """Rows of slices [0, start)."""
        if start >= self.slices:
            return self.rows
        seen = self.seen[self._at(start)]
        return seen.rows + sum(p.weight for p in seen.pieces[: start - seen.index])

    def _at(self, start: int) -> int:
        """Position of the last file whose first slice is at or before `start`."""
        return max(bisect_right(self.seen, start, key=lambda s: s.index) - 1, 0)

    def _slice(self, root: Path, seen: _Seen, i: int) -> Slice:
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
