"""A text that is made of others, and where its parts come from."""

import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from joinlib.errors import SqlError
from joinlib.sql.parse import place_of


@dataclass(frozen=True)
class TextPiece:
    """A part of a composed text, as far as the next one begins."""

    start: int  # in the composed text
    view: str  # whose text it is of; "": the query's
    text: str  # that text
    offset: int  # in that text
    fixed: bool = False  # all of it stands for what is at `offset`: a parameter


@dataclass(frozen=True)
class Composed:
    """A text and where its pieces come from."""

    sql: str
    pieces: tuple[TextPiece, ...]

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turn places in the composed text, of mistakes in the block, into those of what was written."""
        before = _told.set(self)
        try:
            yield
        except SqlError as error:
            if not error.line:
                raise
            raise self._told(error) from error
        finally:
            _told.reset(before)

    def _told(self, error: SqlError) -> SqlError:
        view = (error.line, error.column, error.view)
        place = self.place(error.line, error.column) if error.line else view
        return SqlError(error.message, *place, tuple(map(self._told, error.more)), error.output)

    def place(self, line: int, column: int) -> tuple[int, int, str]:
        """Return the line, the column and the view (or output) where a place of the composed text was written."""
        rows = self.sql.split("\n")
        at = sum(len(row) + 1 for row in rows[: line - 1]) + column - 1
        piece = self.pieces[max(bisect.bisect_right([p.start for p in self.pieces], at) - 1, 0)]
        found = piece.offset + (0 if piece.fixed else max(at - piece.start, 0))
        return (*place_of(piece.text, min(found, len(piece.text))), piece.view)


_told: ContextVar[Composed | None] = ContextVar("told", default=None)


def written_at(line: int, column: int) -> tuple[int, int, str]:
    """Return where a place was written, for mistakes that are only found when rows have come: see `telling`."""
    text = _told.get()
    return text.place(line, column) if text is not None and line else (line, column, "")
