"""Result rows as messages, in columns: of keys and of values.

    json, csv    a message is a row: texts.json_objects, texts.csv_lines
    avro         a message is a row: avro.rows, behind a zero and the id of its schema in a registry
    protobuf     a message is a row: protobuf.rows, behind the same and a zero, which is the first type of the schema
    arrow        a message is a frame: an Arrow IPC stream, cut until it fits
    debezium     a message is what happened to a row: {"before", "after", "op", "ts_ms", "source"}

A key is the text of its column, or a JSON array of several columns; with keyFormat avro or protobuf, a record or a
message of them. NULL in a single column means no key. In mode upsert a row of weight -1 has no value: it is a tombstone
for its key. Debezium's keys are objects, and a tombstone follows the message of a row that went, so that a compacted
topic forgets its key.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.errors import SpecError
from joinlib.model.changelog import BATCH, CHANGE_TYPE, DELETE, INSERT, POSTIMAGE, PREIMAGE
from joinlib.sink import avro, changelog, protobuf, texts
from joinlib.sink.config import KafkaSinkConfig
from joinlib.source.payloads import Payloads

_OPS = {INSERT: "c", DELETE: "d", PREIMAGE: "u"}


@dataclass(frozen=True)
class Outgoing:
    """Messages to be sent, in order. A message without a value is a tombstone."""

    keys: Payloads | None  # None: no message has one
    values: Payloads

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: slice) -> "Outgoing":
        return Outgoing(self.keys[at] if self.keys is not None else None, self.values[at])

    def largest(self) -> int:
        """Return the bytes of the largest message."""
        keys = 0 if self.keys is None else np.maximum(self.keys.sizes, 0)
        return int((np.maximum(self.values.sizes, 0) + keys).max())


def messages(batch: pa.RecordBatch, target: KafkaSinkConfig) -> Iterator[Outgoing]:
    """Yield the messages of all rows, in order: at once, but for those of format arrow, each of which is large.

    In mode upsert the rows are those of `changelog.latest`, for debezium those of `changelog.rows` of a whole
    unit.

    Raises:
        SpecError: A row cannot be a message.
    """
    if target.spec.format == "arrow":
        yield from (Outgoing(None, Payloads.of([value])) for value in _streams(batch, target))
    elif target.spec.format == "debezium":
        yield _envelopes(batch, target)
    elif target.mode == "upsert":
        yield _replacing(batch, target)
    else:
        yield Outgoing(_keys(batch, target), Payloads.of_column(_lines(batch, target)))


def _replacing(batch: pa.RecordBatch, target: KafkaSinkConfig) -> Outgoing:
    """Return a message for each key: its row, or a tombstone."""
    rows, weights = changelog.split(batch)
    assert weights is not None
    if len(target.key) == 1 and rows.column(target.key[0]).null_count:
        raise SpecError(
            f"output.key: {target.key[0]} is NULL in a row, and a message without a key replaces nothing; leave such"
            f" rows out (WHERE {target.key[0]} IS NOT NULL), or add a column to the key"
        )
    lines = pc.if_else(pa.array(weights > 0), _lines(rows, target), None)
    return Outgoing(_keys(rows, target), Payloads.of_column(lines))


def _envelopes(batch: pa.RecordBatch, target: KafkaSinkConfig) -> Outgoing:
    """Return Debezium's messages; an update is one of them, made of the two rows that stand side by side."""
    words, numbers = batch.column(CHANGE_TYPE), batch.column(BATCH)
    rows = batch.drop_columns([CHANGE_TYPE, BATCH])
    lines = texts.json_objects(rows)
    first = pc.not_equal(words, POSTIMAGE)
    following = pa.concat_arrays([lines[1:], pa.nulls(min(len(lines), 1), pa.string())])
    fields = [
        '{"before":',
        pc.if_else(pc.equal(words, INSERT), "null", lines),
        ',"after":',
        pc.case_when(
            pc.make_struct(pc.equal(words, INSERT), pc.equal(words, PREIMAGE)),
            lines,
            following,
            "null",
        ),
        ',"op":"',
        pa.array([_OPS.get(word, "") for word in words.to_pylist()], pa.string()),
        f'","ts_ms":{time.time_ns() // 1_000_000},"source":{{"batch":',
        numbers.cast(pa.string()),
        "}}",
    ]
    sent = Outgoing(None, Payloads.of_column(pc.binary_join_element_wise(*fields, "").filter(first)))
    if not target.key:
        return sent
    keys = texts.json_objects(rows.select(list(target.key)).filter(first))
    sent = replace(sent, keys=Payloads.of_column(keys))
    if target.mode != "upsert":
        return sent
    return _with_tombstones(sent, pc.equal(words, DELETE).filter(first).to_numpy(zero_copy_only=False))


def _with_tombstones(sent: Outgoing, gone: npt.NDArray[np.bool_]) -> Outgoing:
    """Return messages with a tombstone behind each that tells of a row that went."""
    assert sent.keys is not None
    which = np.repeat(np.arange(len(gone)), 1 + gone)
    again = np.concatenate(([False], which[1:] == which[:-1]))
    values = sent.values.take(which)
    return Outgoing(sent.keys.take(which), replace(values, sizes=np.where(again, -1, values.sizes)))


def _lines(batch: pa.RecordBatch, target: KafkaSinkConfig) -> pa.Array:
    if target.spec.format == "avro":
        return avro.rows(batch, _head(target.schema_id))
    if target.spec.format == "protobuf":
        assert target.message is not None
        return protobuf.rows(batch, _head(target.schema_id) + b"\0", target.message)
    return texts.json_objects(batch) if target.spec.format == "json" else texts.csv_lines(batch)


def _head(id: int) -> bytes:
    """Return what a message begins with that has a schema, by its id."""
    return b"\0" + id.to_bytes(4, "big")


def _keys(batch: pa.RecordBatch, target: KafkaSinkConfig) -> Payloads | None:
    key = target.key
    if not key:
        return None
    columns = batch.select(list(key))
    if target.spec.key_format == "text":
        rows = texts.texts(columns.column(0)) if len(key) == 1 else texts.json_arrays(columns)
        return Payloads.of_column(rows)
    head = _head(target.key_schema_id)
    if target.key_message is not None:
        rows = protobuf.rows(columns, head + b"\0", target.key_message)
    else:
        rows = avro.rows(columns, head)
    return Payloads.of_column(pc.if_else(columns.column(0).is_valid(), rows, None) if len(key) == 1 else rows)


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
