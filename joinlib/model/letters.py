"""Dead letters as they travel: rows that were left out, each with its place, the reason and its columns.

A letter is made where its row is left out: in a map task, or in a unit. It goes to the tasks of the last level as
blocks of these columns, and is written there (`sink.letters`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

Reason = Literal["unreadable", "expression", "late", "result"]
OF_INPUTS: tuple[Reason, ...] = ("unreadable", "expression", "late")

LETTER = pa.schema(
    [
        ("input", pa.string()),  # its name in the spec; NULL for a row of a result
        ("output", pa.string()),  # of a row of a result: the name of the output; empty for the only one
        ("reason", pa.string()),
        ("error", pa.string()),  # in words, without values
        ("file", pa.string()),  # a path, or a topic; NULL: not known
        ("partition", pa.int32()),  # of a topic
        ("at", pa.int64()),  # the message's offset, or the row's number in the file, from 1; NULL: not known
        ("change", pa.string()),  # of rows that change: insert or delete
        ("row", pa.string()),  # a JSON object of its columns; NULL: it could not be decoded
        ("text", pa.string()),  # of what could not be decoded
    ]
)


@dataclass(frozen=True)
class DeadRows:
    """How many dead letters there are of an input (or of an output, if they are rows of a result), by reason."""

    source: str
    reason: str
    count: int


@dataclass(frozen=True)
class LetterBox:
    """Where dead letters go, and which rows become some. Frozen, picklable."""

    folder: Path
    late: frozenset[str] = frozenset()  # inputs whose late rows do
    # Stages whose rows do if a column fails, with the input whose rows they are, or the output whose result.
    failed: tuple[tuple[int, str | None, str | None], ...] = ()
    # Stages, with their outputs, for which rows of others do if something fails on the way there.
    readers: tuple[tuple[int, str], ...] = ()

    def called(self, stage: int) -> tuple[str | None, str | None] | None:
        """Return the input or the output by which a stage's failing rows are called; None: they stop the job."""
        return next(((input, output) for number, input, output in self.failed if number == stage), None)

    def reading(self, stage: int) -> str | None:
        """Return the outputs by which rows are called that fail on the way to a stage; None: they stop the job."""
        return dict(self.readers).get(stage)
