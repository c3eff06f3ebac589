"""Slices of topics -> rows, in any process. A slice is decoded as one block, or a few where its messages are large.

A message without a value (a tombstone) is no row. What cannot be decoded stops the job, is left out, or goes to a
dead letter, as the spec says; a null key is a null in the key's column and nothing else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa

from joinlib.errors import InputError
from joinlib.source.kafka import consumer
from joinlib.source.kafka.config import KafkaConfig
from joinlib.source.kafka.decode import Decoder, Refused
from joinlib.source.slices import Reader, Slice

_BLOCK_BYTES = 32 << 20  # of values, decoded at once
_BLOCK_ROWS = 65_536


@dataclass
class Counts:
    """What was left out while reading."""

    bad: int = 0
    tombstones: int = 0


@dataclass(frozen=True)
class KafkaReader(Reader):
    """Reads slices of topics of one format and schema. Slices of a partition come in order, partition after partition."""

    config: KafkaConfig
    schema: pa.Schema
    counts: Counts = field(default_factory=Counts, compare=False)

    def read_many(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(self.config, self.schema, tuple(columns))
        ordered = sorted(slices, key=lambda s: (s.path, s.group, s.start))
        for (topic, partition), group in groupby(ordered, lambda s: (s.path, s.group)):
            for start, stop in _joined(group):
                yield from self._range(decoder, topic, partition, start, stop)

    def _range(
        self, decoder: Decoder, topic: str, partition: int, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        source = consumer.source(self.config.connection)
        lists = source.messages(topic, partition, start, stop, self.config.on_missing == "reset")
        for block in _blocks(lists):
            self.counts.tombstones += sum(m.value() is None for m in block)
            rows, refused = decoder.decode([m for m in block if m.value() is not None])
            if refused:
                self._refuse(refused)
            if rows is not None and rows.num_rows:
                yield from _bounded(rows)

    def _refuse(self, refused: list[Refused]) -> None:
        if self.config.on_bad == "fail":
            m, reason = refused[0]
            raise InputError(
                f"kafka topic {m.topic()}, partition {m.partition()}, offset {m.offset()}: {reason}; correct the schema"
                " or the format, or set `onBadMessage: skip` or `deadLetter`"
            )
        self.counts.bad += len(refused)


def _joined(slices: Iterator[Slice]) -> Iterator[tuple[int, int]]:
    """Ranges that follow each other, as one."""
    start = stop = -1
    for s in slices:
        if s.start != stop:
            if stop > start:
                yield start, stop
            start = s.start
        stop = s.stop
    if stop > start:
        yield start, stop


def _blocks(lists: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """The same messages in lists that depend on nothing but them: two attempts of a task make the same blocks."""
    block: list[Any] = []
    size = 0
    for messages in lists:
        sizes = [len(m) for m in messages]  # of the value
        if len(block) + len(messages) < _BLOCK_ROWS and size + sum(sizes) < _BLOCK_BYTES:
            block += messages
            size += sum(sizes)
            continue
        for message, bytes_ in zip(messages, sizes, strict=True):
            block.append(message)
            size += bytes_
            if len(block) >= _BLOCK_ROWS or size >= _BLOCK_BYTES:
                yield block
                block, size = [], 0
    if block:
        yield block


def _bounded(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A message of the arrow format may hold any number of rows."""
    for start in range(0, rows.num_rows, 4 * _BLOCK_ROWS):
        yield rows.slice(start, 4 * _BLOCK_ROWS)
