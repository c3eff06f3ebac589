"""The sink of one task and batch: result rows become files, messages, rows of a table, or a sample."""

from typing import Protocol

import pyarrow as pa

from joinlib.model.tuning import Tuning
from joinlib.sink.changing import changing, written
from joinlib.sink.config import SinkConfig, staged
from joinlib.sink.console import ConsoleSink
from joinlib.sink.files import FileSink
from joinlib.sink.sampled import SampledSink


class Sink(Protocol):
    """Takes the results of one task and batch, one unit after the other."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        """End a unit: return the names of the staged files that it has begun, and rows to show, if any."""
        ...

    def close(self) -> None:
        """End the task: all that was written is complete. Manifests may be saved only after this."""
        ...


def open_sink(
    config: SinkConfig, schema: pa.Schema, tuning: Tuning, *, partition: int, batch: int, attempt: int
) -> Sink:
    """Open the sink of one task and batch.

    Args:
        config: Where the results go.
        schema: Of the results, without weights.
        tuning: The size of frames, and whether files are synced.
        partition: The task's.
        batch: The batch's number.
        attempt: The number of this attempt at the task, by which Spark counts them.
    """
    sink = _plain(config, written(config, schema), tuning, partition, batch, attempt)
    if config.show and not isinstance(sink, ConsoleSink):
        sink = SampledSink(sink, config.show)
    return changing(sink, config, batch)


def _plain(
    config: SinkConfig, schema: pa.Schema, tuning: Tuning, partition: int, batch: int, attempt: int
) -> Sink:
    if config.kafka is not None:
        from joinlib.sink.kafka.sink import KafkaSink  # the client is loaded where there is a topic

        return KafkaSink(config.kafka, partition, batch)
    if config.postgres is not None:
        from joinlib.sink.postgres.sink import PostgresSink

        return PostgresSink(config.postgres, batch)
    if config.kind == "files":
        assert config.folder is not None and config.format is not None
        file = staged(config.folder, batch, partition, attempt, config.format)
        return FileSink(file, config.format, schema, tuning)
    return ConsoleSink(config.show)
