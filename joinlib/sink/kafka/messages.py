"""Result rows as messages: (key, value) pairs of bytes.

    json, csv    a message is a row: texts.json_objects, texts.csv_lines
    arrow        a message is a frame: an Arrow IPC stream, cut until it fits

A key is the text of its column, or a JSON array of several columns; NULL in a single column means no key. A
row whose `deleted` column is true has no value: it is a tombstone for its key.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.model.grouping import DELETED
from joinlib.sink import texts
from joinlib.sink.config import KafkaSinkConfig

Message = tuple[bytes | None, bytes | None]


def messages(batch: pa.RecordBatch, target: KafkaSinkConfig) -> Iterator[Message]:
    """Yield the messages of all rows, in order."""
    if target.spec.format == "arrow":
        return ((None, value) for value in _streams(batch, target))
    return zip(_keys(batch, target.spec.key), _values(batch, target), strict=True)


def _values(batch: pa.RecordBatch, target: KafkaSinkConfig) -> list[bytes | None]:
    kept = batch.drop_columns([DELETED]) if target.changelog else batch
    lines = texts.json_objects(kept) if target.spec.format == "json" else texts.csv_lines(kept)
    if target.changelog:
        lines = pc.if_else(batch.column(DELETED), None, lines)
    return lines.cast(pa.binary()).to_pylist()


def _keys(batch: pa.RecordBatch, key: tuple[str, ...]) -> list[bytes | None]:
    if not key:
        return [None] * batch.num_rows
    columns = batch.select(list(key))
    made = texts.texts(columns.column(0)) if len(key) == 1 else texts.json_arrays(columns)
    return made.cast(pa.binary()).to_pylist()


def _streams(batch: pa.RecordBatch, target: KafkaSinkConfig) -> Iterator[bytes]:
    """Encode as many rows per message as fit; a part that turns out too large is halved."""
    parts = -(-batch.nbytes // target.max_bytes)
    size = max(1, batch.num_rows // max(parts, 1))
    for start in range(0, batch.num_rows, size):
        part = batch.slice(start, size)
        value = _stream(part)
        if len(value) <= target.max_bytes:
            yield value
        elif part.num_rows > 1:
            half = part.num_rows // 2
            yield from _streams(part.slice(0, half), target)
            yield from _streams(part.slice(half), target)
        else:
            raise too_large(target, len(value))


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def too_large(target: KafkaSinkConfig, size: int) -> SpecError:
    """Return the error for a row that fits in no message."""
    return SpecError(
        f"output.kafka: a result row takes {size} bytes, a message of topic {target.topic} at most"
        f" {target.max_bytes}; raise the topic's max.message.bytes, or select less"
    )
