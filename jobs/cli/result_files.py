"""Reads files of results again: those of the folders `batch=N`, in any format that an output has."""

import csv
from collections.abc import Sequence
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from joinlib.source.parse import CsvFormat, csv_table, json_table
from joinlib.spec.output import OutputFiles

_CSV = CsvFormat(header=True, delimiter=",", quote='"', null="")


def columns(file: Path, written: OutputFiles) -> Sequence[str]:
    """Return the columns of a file, which has a row at least: those of the spec that wrote it."""
    if written.format == "parquet":
        return list(pq.read_schema(file).names)
    with file.open(encoding="utf-8", newline="") as text:
        return next(csv.reader(text)) if written.format == "csv" else list(orjson.loads(text.readline()))


def rows(file: Path, written: OutputFiles, schema: pa.Schema) -> pa.Table:
    """Return the rows of a file, in columns that it has."""
    if written.format == "parquet":
        return pq.read_table(file, columns=schema.names, partitioning=None).cast(schema)
    text = file.read_bytes()
    if written.format == "jsonl":
        return json_table(text, schema).select(schema.names)
    _, _, lines = text.partition(b"\n")  # no name of a column has a line break
    return csv_table(lines, schema, columns(file, written), _CSV)
