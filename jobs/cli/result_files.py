"""Reads files of results again: those of the folders `batch=N`, in any format that an output has."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.sink.changelog import described
from joinlib.source.parse import CsvFormat, csv_table, json_table
from joinlib.spec.output import OutputFiles

_CSV = CsvFormat(header=True, delimiter=",", quote='"', null="")


@dataclass(frozen=True)
class FileRows:
    """Rows of files, which an earlier spec may have written in part.

    Attributes:
        files: The files.
        written: How they are written.
        schema: Of the results.
        changes: Whether they say what happened to the rows.
    """

    files: tuple[Path, ...]
    written: OutputFiles
    schema: pa.Schema
    changes: bool

    @cached_property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns that all of these files have."""
        known = [set(_columns(file, self.written)) for file in self.files]
        return {f.name: f.type for f in self.schema if all(f.name in names for names in known)}

    def tables(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, with the columns of a changelog if there are changes."""
        schema = described(columns) if self.changes else columns
        for file in self.files:
            yield _rows(file, self.written, schema)


def _columns(file: Path, written: OutputFiles) -> Sequence[str]:
    """Return the columns of a file, which has a row at least: those of the spec that wrote it."""
    if written.format == "parquet":
        return list(pq.read_schema(file).names)
    with file.open(encoding="utf-8", newline="") as text:
        return next(csv.reader(text)) if written.format == "csv" else list(orjson.loads(text.readline()))


def _rows(file: Path, written: OutputFiles, schema: pa.Schema) -> pa.Table:
    """Return the rows of a file, in columns that it has."""
    if written.format == "parquet":
        return pq.read_table(file, columns=schema.names, partitioning=None).cast(schema)
    text = file.read_bytes()
    if written.format == "jsonl":
        return json_table(text, schema).select(schema.names)
    _, _, lines = text.partition(b"\n")  # no name of a column has a line break
    return csv_table(lines, schema, _columns(file, written), _CSV)
