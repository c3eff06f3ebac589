"""Writes result rows as one staged file per task: Parquet, CSV or JSON lines."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from joinlib.files import sync
from joinlib.model.tuning import Tuning
from joinlib.sink import texts

if TYPE_CHECKING:
    from joinlib.spec.inputs import Format


class FileSink:
    """Writes one file for all units of the task.

    The file is made with the first row. Rows of several small units are written together.
    """

    def __init__(self, file: Path, format: "Format", schema: pa.Schema, tuning: Tuning) -> None:
        self.file, self.format, self.schema, self.tuning = file, format, schema, tuning
        self._writer: pq.ParquetWriter | csv.CSVWriter | JsonWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0  # that wait: counted, as there may be very many parts
        self._begun = self._told = False

    def write(self, batch: pa.RecordBatch) -> None:
        self._begun = True
        self._waiting.append(batch)
        self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + batch.nbytes
        if self._rows >= self.tuning.frame_rows or self._bytes >= self.tuning.frame_bytes:
            self._write()

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        fresh, self._told = self._begun and not self._told, self._begun
        return ((self.file.name,) if fresh else ()), None

    def close(self) -> None:
        if not self._begun:
            return
        self._write()
        assert self._writer is not None
        self._writer.close()
        if self.tuning.sync:
            sync([self.file])

    def _write(self) -> None:
        if self._writer is None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._writer = _WRITERS[self.format](self.file, self.schema)
        if self._waiting:
            rows, self._waiting = pa.concat_batches(self._waiting), []
            self._rows = self._bytes = 0
            self._writer.write_batch(rows)


class JsonWriter:
    """Writes one JSON object per line, in the format of `texts`."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        del schema
        self._file = open(path, "wb")  # noqa: SIM115 - closed by close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        lines = pc.binary_join_element_wise(texts.json_objects(batch), "", "\n")
        self._file.write(b"".join(lines.cast(pa.binary()).to_pylist()))

    def close(self) -> None:
        self._file.close()


def _csv(path: Path, schema: pa.Schema) -> csv.CSVWriter:
    return csv.CSVWriter(str(path), schema)


_WRITERS = {"parquet": pq.ParquetWriter, "csv": _csv, "jsonl": JsonWriter}
