"""A folder of files as a table: everything that is in it now, read as the sources read streams."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from joinlib.source import FilesConfig, make


@dataclass(frozen=True)
class FilesTable:
    """The files of one folder and those columns of them that are read. `schema`: of all columns."""

    name: str  # of the input, for messages
    config: FilesConfig
    schema: pa.Schema
    columns: tuple[str, ...]

    def read_all(self) -> Iterator[pa.RecordBatch]:
        """Every row of the files that are there when it begins."""
        with tempfile.TemporaryDirectory() as logs:
            found = make(self.name, self.config, self.schema, Path(logs))
            slices = found.slices(0, found.discover())
        return found.reader.read_many(slices, self.columns)

    @property
    def bytes(self) -> int:
        """Of the files as they lie on the disk."""
        path = self.config.path
        return sum(f.stat().st_size for f in (path.rglob("*") if path.is_dir() else [path]) if f.is_file())
