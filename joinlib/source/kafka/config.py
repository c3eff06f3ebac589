"""Which topics are read, and how their messages become rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from joinlib.source.changes import RowChanges
from joinlib.source.parse import CsvFormat

if TYPE_CHECKING:
    from joinlib.spec.inputs import KafkaTopics
    from joinlib.spec.kafka import About


@dataclass(frozen=True)
class KafkaConfig:
    """One input. Frozen, picklable; names where secrets lie and holds none."""

    name: str  # of the input, for errors and files
    spec: "KafkaTopics"
    csv: CsvFormat
    schemas: Path  # the folder in which schemas of a registry are kept
    changes: RowChanges | None  # how messages say that rows came or went; None: rows only come

    @property
    def dead_letters(self) -> Path | None:
        """The folder for messages under onBadMessage: deadLetter."""
        return self.spec.dead_letters.path if self.spec.dead_letters else None

    @property
    def filled(self) -> dict[str, "About"]:
        """The columns that are filled from a message's metadata, not from its value."""
        return {column: about for about, column in self.spec.metadata.columns.items()}
