"""Where result rows go from a unit: into the JVM as rows (Python API), or straight into staged files or Kafka (command line).

Only the first costs a crossing; the others hand the driver a receipt.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from joinlib.files import sync
from joinlib.join.rows import Tuples, flat
from joinlib.join.stage import OutputColumn
from joinlib.spark import texts
from joinlib.spark.task import Format, JoinTask, staging

if TYPE_CHECKING:
    from joinlib.spark.outbox import Outbox


def project(
    tuples: Iterator[Tuples], select: tuple[OutputColumn, ...], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The select list's columns."""
    for t in tuples:
        yield pa.record_batch([flat(c.value.evaluate(t.column, len(t))) for c in select], schema)


def frames(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `rows`: never more, few that are smaller."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            part = batch.slice(start, rows)
            if count + part.num_rows > rows:
                yield pa.concat_batches(waiting)
                waiting, count = [], 0
            waiting.append(part)
            count += part.num_rows
    if waiting:
        yield pa.concat_batches(waiting)


class Sink(Protocol):
    """Takes the result of one unit and batch."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> tuple[tuple[str, ...], bytes | None]:
        """Names of staged files, and rows to show if any."""
        ...


def open_sink(task: JoinTask, unit: int, batch: int, attempt: int, outbox: "Outbox | None" = None) -> Sink:
    """The sink of one unit and batch. `outbox`: of its task, if results go to Kafka."""
    emit, schema = task.emit, task.pipeline.schema
    if outbox is not None:
        return Letters(outbox)
    if emit.kind == "files":
        assert emit.folder is not None
        # Attempts of two drivers may have one number, while the older driver's executors are still ending.
        name = f"part-{unit:05d}-{attempt}-{uuid.uuid4().hex[:8]}.{emit.format}"
        return FileSink(staging(emit.folder, batch), name, emit.format, schema, task.tuning.sync)
    return Head(emit.show if emit.kind == "console" else 0, schema)


class FileSink:
    """One file, made when the first row comes. `synced`: it is on the disk before the driver hears of it."""

    def __init__(self, folder: Path, name: str, format: Format, schema: pa.Schema, synced: bool) -> None:
        self.folder, self.name, self.format, self.schema = folder, name, format, schema
        self.synced = synced
        self._writer: pq.ParquetWriter | csv.CSVWriter | JsonWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._writer = _WRITERS[self.format](self.folder / self.name, self.schema)
        self._writer.write_batch(batch)

    def close(self) -> tuple[tuple[str, ...], bytes | None]:
        if self._writer is None:
            return (), None
        self._writer.close()
        if self.synced:
            sync([self.folder / self.name])
        return (self.name,), None


class Letters:
    """Rows into the outbox of the task, which it shares with the task's other units."""

    def __init__(self, outbox: "Outbox") -> None:
        self._outbox = outbox

    def write(self, batch: pa.RecordBatch) -> None:
        self._outbox.send(batch)

    def close(self) -> tuple[tuple[str, ...], bytes | None]:
        return (), None


class Head:
    """The first rows, for the console; or none at all."""

    def __init__(self, rows: int, schema: pa.Schema) -> None:
        self.room, self.schema = rows, schema
        self._kept: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if self.room:
            self._kept.append(batch.slice(0, self.room))
            self.room -= self._kept[-1].num_rows

    def close(self) -> tuple[tuple[str, ...], bytes | None]:
        if not self._kept:
            return (), None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema) as writer:
            for batch in self._kept:
                writer.write_batch(batch)
        return (), sink.getvalue().to_pybytes()


class JsonWriter:
    """One JSON object a line, as `texts` writes it."""

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
