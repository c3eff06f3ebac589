"""Which topics are read, and how their messages become rows."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from joinlib.source.parse import CsvFormat

if TYPE_CHECKING:
    from joinlib.spec.kafka import About, KafkaConnection

Format = Literal["json", "arrow", "csv"]
Starting = Literal["earliest", "latest"]
OnMissing = Literal["fail", "reset"]
OnBad = Literal["fail", "skip", "deadLetter"]


@dataclass(frozen=True)
class KafkaConfig:
    """One input. Frozen, picklable; names where secrets lie and holds none."""

    connection: "KafkaConnection"
    topics: tuple[str, ...]
    format: Format = "json"
    starting: Starting = "earliest"
    on_missing: OnMissing = "fail"
    on_bad: OnBad = "fail"
    dead_letters: Path | None = None  # the folder for messages under onBadMessage: deadLetter
    metadata: tuple[tuple["About", str], ...] = ()  # (a message's property, the column that it fills)
    csv: CsvFormat = field(default_factory=lambda: CsvFormat(header=False))
    name: str = ""  # of the input, for errors and files

    @property
    def filled(self) -> dict[str, "About"]:
        """The columns that are filled from a message's metadata, not from its value."""
        return {column: about for about, column in self.metadata}
