"""Reads a folder of files as a table: all files that are in it now, by the readers of the streams."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from joinlib.source import FilesConfig, make


@dataclass(frozen=True)
class FilesTable:
    """The files of one folder, and the columns to read of them. `schema`: of all columns."""

    name: str  # the input's name, for messages
    config: FilesConfig
    schema: pa.Schema
    columns: tuple[str, ...]

    def read_all(self) -> Iterator[pa.RecordBatch]:
        """Read every row of the files that are there at the start."""
        with tempfile.TemporaryDirectory() as logs:
            found = make(self.name, self.config, self.schema, Path(logs))
            slices = found.slices(0, found.discover())
        return found.reader.read_many(slices, self.columns)

    @property
    def bytes(self) -> int:
        """The size of the files on disk."""
        path = self.config.path
        return sum(f.stat().st_size for f in (path.rglob("*") if path.is_dir() else [path]) if f.is_file())
