"""Reads slices of topics as rows, in any process.

A slice is decoded as one block, or a few if messages are large.

A message without a value (a tombstone) is no row. A message that cannot be decoded stops the job, is
left out and counted, or is also kept as a dead letter, as configured. A null key is a NULL in the
key's column, nothing else.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Any

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.source.kafka import consumer, letters
from joinlib.source.kafka.bad import BadMessage
from joinlib.source.kafka.config import KafkaConfig
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.ranges import Partition
from joinlib.source.slices import BATCH_ROWS, Refused, Slice, SliceReader
from joinlib.spec.kafka import KafkaConnection

_CHUNK_ROWS = 8_192  # messages decoded at once: few enough to stay in the processor's cache
_CHUNK_BYTES = 8 << 20  # bytes of values decoded at once
_BLOCK_BYTES = 32 << 20  # bytes of a record batch that is made of chunks


@dataclass
class Counts:
    """Counts of what was left out while reading."""

    bad: int = 0


@dataclass(frozen=True)
class KafkaReader(SliceReader):
    """Reads slices of topics of one format and schema: partition by partition, each in order."""

    config: KafkaConfig
    schema: pa.Schema
    refused: list[Refused] | None = None  # takes bad messages; None: `onBadMessage` says what happens
    counts: Counts = field(default_factory=Counts, compare=False)

    @property
    def bad(self) -> int:
        """The number of messages that could not be decoded, of all that was read."""
        return self.counts.bad

    def read_many(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(self.config, self.schema, tuple(columns))
        for run in _runs(self.in_order(slices)):
            source = consumer.source(self.config.spec.connection)
            reset = self.config.spec.on_missing_offsets == "reset"
            lists = source.messages(run[0].path, run[0].group, run[0].start, run[-1].stop, reset)
            for at, own in groupby(_cut(run, lists), lambda found: found[0]):
                yield from self._slice(decoder, run[at], (messages for _, messages in own))

    def in_order(self, slices: Sequence[Slice]) -> Sequence[Slice]:
        return sorted(slices, key=lambda s: (s.path, s.group, s.start))

    def located(self, slice: Slice, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, I64]]:
        """Yield the rows of a slice, each with the offset of its message; nothing is refused, counted or kept.

        Raises:
            InputError: Messages have expired.
        """
        decoder = Decoder(self.config, self.schema, tuple(columns))
        source = consumer.source(self.config.spec.connection)
        for chunk in _chunks(source.messages(slice.path, slice.group, slice.start, slice.stop, False)):
            rows, bad = decoder.decode(chunk)
            if (
                rows is not None
                and not bad
                and rows.num_rows == len(chunk)
                and self.config.spec.format != "arrow"
            ):
                yield rows, np.array([message.offset() for message in chunk], np.int64)
                continue
            for message in chunk:
                rows, _ = decoder.decode([message])
                if rows is not None:
                    yield rows, np.full(rows.num_rows, message.offset(), np.int64)

    def _slice(self, decoder: Decoder, slice: Slice, lists: Iterator[list[Any]]) -> Iterator[pa.RecordBatch]:
        refused: list[BadMessage] = []
        block: list[pa.RecordBatch] = []
        for chunk in _chunks(lists):
            rows, bad = decoder.decode(chunk)
            if bad and self.config.spec.on_bad_message == "fail":
                if self.refused is None:
                    raise InputError(_refusal(bad[0]))
                self.refused.extend(map(_refused, bad))
            self.counts.bad += len(bad)
            if self.config.dead_letters is not None:
                refused += bad
            if rows is not None:
                block.append(rows)
            if sum(b.nbytes for b in block) > _BLOCK_BYTES:
                yield from _bounded(block)
                block = []
        yield from _bounded(block)
        if refused and self.config.dead_letters is not None:
            letters.write(self.config.dead_letters, self.config.name, slice, refused)


def fetch_ahead(reads: Iterable[tuple[KafkaConfig, Sequence[Slice]]]) -> None:
    """Fetch from all partitions at once; each is read in its turn."""
    starts: dict[KafkaConnection, dict[Partition, int]] = {}
    for config, slices in reads:
        known = starts.setdefault(config.spec.connection, {})
        for s in slices:
            known[s.path, s.group] = min(s.start, known.get((s.path, s.group), s.start))
    for connection, places in starts.items():
        consumer.source(connection).fetch_ahead(places)


def _runs(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Group slices that follow each other without a gap, so that they are read in one go."""
    run: list[Slice] = []
    for s in slices:
        if run and (s.path, s.group, s.start) != (run[-1].path, run[-1].group, run[-1].stop):
            yield run
            run = []
        run.append(s)
    if run:
        yield run


def _cut(run: Sequence[Slice], lists: Iterator[list[Any]]) -> Iterator[tuple[int, list[Any]]]:
    """Yield messages in the order of their offsets, each list with the position of its slice."""
    at = 0
    for messages in lists:
        while messages:
            end = bisect_left(messages, run[at].stop, key=lambda m: m.offset())
            if end:
                yield at, messages[:end]
            messages = messages[end:]
            at += bool(messages)


def _chunks(lists: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """Cut messages into chunks by nothing but their sizes, so two attempts of a task make the same blocks."""
    chunk: list[Any] = []
    size = 0
    for messages in lists:
        upto = [0, *accumulate(map(len, messages))]  # bytes of the values before each
        start = 0
        while start < len(messages):
            full = bisect_left(upto, upto[start] + _CHUNK_BYTES - size, start + 1)
            end = min(full, start + _CHUNK_ROWS - len(chunk), len(messages))
            chunk += messages[start:end]
            size += upto[end] - upto[start]
            start = end
            if len(chunk) == _CHUNK_ROWS or size >= _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
    if chunk:
        yield chunk


def _bounded(block: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield as few batches as possible. One message in the Arrow format may hold any number of rows."""
    rows = [b for b in block if b.num_rows]
    if rows:
        whole = pa.concat_batches(rows) if len(rows) > 1 else rows[0]
        for start in range(0, whole.num_rows, BATCH_ROWS):
            yield whole.slice(start, BATCH_ROWS)


def _refused(bad: BadMessage) -> Refused:
    m, reason = bad
    return Refused(m.topic(), m.partition(), m.offset(), reason, m.value())


def _refusal(refused: BadMessage) -> str:
    m, reason = refused
    return (
        f"kafka topic {m.topic()}, partition {m.partition()}, offset {m.offset()}: {reason}; correct schema"
        " or format, or set the input's `onError: deadLetter`, or `onBadMessage: skip` or `deadLetter`"
    )
