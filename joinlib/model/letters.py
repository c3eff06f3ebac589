"""Dead letters as they travel: rows that were left out, each with its place, the reason and its columns.

A letter is made where its row is left out: in a map task, or in a unit. It goes to the tasks of the last level as
blocks of these columns, and is written there (`sink.letters`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

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


class LetterName(NamedTuple):
    """By what rows that fail are called: the input whose rows they are, or the outputs of whose results they are."""

    input: str | None
    output: str | None


@dataclass(frozen=True)
class LetterBox:
    """Where dead letters go, and which rows become some. Frozen, picklable."""

    folder: Path
    late: frozenset[str] = frozenset()  # inputs whose late rows do
    failed: Mapping[int, LetterName] = field(default_factory=dict)  # by the stage in which rows fail
    words: Mapping[str, str] = field(default_factory=dict)  # what the text calls what is computed

    def called(self, stage: int) -> LetterName | None:
        """Return by what rows are called that fail in a stage; None: they stop the job."""
        return self.failed.get(stage)

    def called_late(self, sources: Collection[str]) -> str | None:
        """Return by what late rows of sources that were united are called; None: they are only counted."""
        return ", ".join(sources) if sources and self.late.issuperset(sources) else None

    def called_between(self, stage: int, reader: int) -> LetterName | None:
        """Return by what rows of a stage are called that fail on their way to another one; None: they stop the job.

        Rows of an input are those of all outputs; rows of a join fail for the outputs of those who read them.
        """
        own = self.called(stage)
        return own if own is not None and own.input is not None else self.called(reader)
