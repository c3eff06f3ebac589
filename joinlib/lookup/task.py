"""A table of a stage as processes share it: plain values without secrets, and without heavy imports."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from joinlib.model.joins import Lookup

if TYPE_CHECKING:
    from joinlib.lookup.files import FilesTable
    from joinlib.lookup.postgres import PostgresTable


@dataclass(frozen=True)
class TableTask:
    """One lookup of a stage. `reader` None: its only version was made when the query was built."""

    lookup: Lookup
    reader: "PostgresTable | FilesTable | None"
    folder: Path  # holds its versions
    stage: int = 0  # the number of the stage that looks it up

    @property
    def alias(self) -> str:
        """Its name, unique in the query."""
        return self.lookup.table.alias

    @property
    def full(self) -> bool:
        """Whether the whole table is kept, in versions."""
        return self.lookup.caching.mode == "full"

    def version(self, number: int) -> Path:
        return self.folder / f"{number:08d}"
