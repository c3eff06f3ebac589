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
from joinlib.state.tuning import Tuning

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
    """Takes the results of one task and batch: of its units, one after the other."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        """A unit has written all: names of the staged files that it has begun, and rows to show if any."""
        ...

    def close(self) -> None:
        """All units have: what they wrote is whole. Their manifests may be saved only then."""
        ...


def open_sink(task: JoinTask, partition: int, batch: int, attempt: int) -> Sink:
    """The sink of one task and batch."""
    emit = task.emit
    if emit.kafka is not None:
        from joinlib.spark.outbox import Outbox  # the client is loaded where there is a topic

        return Letters(Outbox(emit.kafka, partition, batch))
    if emit.kind == "files":
        assert emit.folder is not None
        # Attempts of two drivers may have one number, while the older driver's executors are still ending.
        name = f"part-{partition:05d}-{attempt}-{uuid.uuid4().hex[:8]}.{emit.format}"
        return FileSink(staging(emit.folder, batch) / name, emit.format, task.pipeline.schema, task.tuning)
    return Head(emit.show if emit.kind == "console" else 0, task.pipeline.schema)


class FileSink:
    """One file for all units of the task, made when there are rows: few of each unit are written together."""

    def __init__(self, file: Path, format: Format, schema: pa.Schema, tuning: Tuning) -> None:
        self.file, self.format, self.schema, self.tuning = file, format, schema, tuning
        self._writer: pq.ParquetWriter | csv.CSVWriter | JsonWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._begun = self._told = False

    def write(self, batch: pa.RecordBatch) -> None:
        self._begun = True
        self._waiting.append(batch)
        if sum(b.num_rows for b in self._waiting) >= self.tuning.frame_rows:
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
            self._writer.write_batch(pa.concat_batches(self._waiting))
            self._waiting = []


class Letters:
    """Rows into the outbox of the task."""

    def __init__(self, outbox: "Outbox") -> None:
        self._outbox = outbox

    def write(self, batch: pa.RecordBatch) -> None:
        self._outbox.send(batch)

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        return (), None

    def close(self) -> None:
        self._outbox.commit()


class Head:
    """The first rows of each unit, for the console; or none at all."""

    def __init__(self, rows: int, schema: pa.Schema) -> None:
        self.rows, self.schema = rows, schema
        self._begin()

    def write(self, batch: pa.RecordBatch) -> None:
        if self._room:
            self._kept.append(batch.slice(0, self._room))
            self._room -= self._kept[-1].num_rows

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        kept = self._kept
        self._begin()
        if not kept:
            return (), None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.schema) as writer:
            for batch in kept:
                writer.write_batch(batch)
        return (), sink.getvalue().to_pybytes()

    def close(self) -> None:
        """Nothing is kept."""

    def _begin(self) -> None:
        self._room = self.rows
        self._kept: list[pa.RecordBatch] = []


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
