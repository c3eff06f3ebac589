"""Reads slices of topics as rows, in any process.

A slice is decoded as one block, or a few if messages are large.

A message without a value (a tombstone) is no row. A message that cannot be decoded stops the job, is
left out and counted, or is also kept as a dead letter, as configured. A null key is a NULL in the
key's column, nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa

from joinlib.arrays import I64
from joinlib.errors import InputError
from joinlib.source.kafka import consumer, letters
from joinlib.source.kafka.bad import BadMessage
from joinlib.source.kafka.config import KafkaConfig
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.messages import Messages
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
            place = run[0].path, run[0].group
            found = source.messages(place, run[0].start, run[-1].stop, reset, headed(self.config))
            for at, own in groupby(_cut(run, found), lambda part: part[0]):
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
        place = slice.path, slice.group
        headers = headed(self.config)
        for chunk in _chunks(source.messages(place, slice.start, slice.stop, False, headers)):
            rows, bad = decoder.decode(chunk)
            if (
                rows is not None
                and not bad
                and rows.num_rows == len(chunk)
                and self.config.spec.format != "arrow"
            ):
                yield rows, chunk.offsets
                continue
            for at in range(len(chunk)):
                rows, _ = decoder.decode(chunk[at : at + 1])
                if rows is not None:
                    yield rows, np.full(rows.num_rows, chunk.offsets[at], np.int64)

    def _slice(self, decoder: Decoder, slice: Slice, found: Iterator[Messages]) -> Iterator[pa.RecordBatch]:
        refused: list[BadMessage] = []
        block: list[pa.RecordBatch] = []
        fails = self.config.spec.on_bad_message == "fail"
        for chunk in _chunks(found):
            rows, bad = decoder.decode(chunk, first=fails and self.refused is None)
            if bad and fails:
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
    headers = dict[KafkaConnection, bool]()
    for config, slices in reads:
        connection = config.spec.connection
        known = starts.setdefault(connection, {})
        headers[connection] = headers.get(connection, False) or headed(config)
        for s in slices:
            known[s.path, s.group] = min(s.start, known.get((s.path, s.group), s.start))
    for connection, places in starts.items():
        consumer.source(connection).fetch_ahead(places, headers[connection])


def headed(config: KafkaConfig) -> bool:
    """Return whether anybody wants to know the headers of messages."""
    return config.dead_letters is not None or "headers" in config.filled.values()


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


def _cut(run: Sequence[Slice], found: Iterator[Messages]) -> Iterator[tuple[int, Messages]]:
    """Yield messages in the order of their offsets, each part with the position of its slice."""
    at = 0
    for messages in found:
        while len(messages):
            end = int(messages.offsets.searchsorted(run[at].stop))
            if end:
                yield at, messages[:end]
            messages = messages[end:]
            at += bool(len(messages))


def _chunks(found: Iterator[Messages]) -> Iterator[Messages]:
    """Cut messages into chunks by nothing but their sizes, so two attempts of a task make the same blocks."""
    chunk: list[Messages] = []
    rows = size = 0
    for messages in found:
        upto = np.concatenate(([0], np.cumsum(np.maximum(messages.values.sizes, 0))))
        start = 0
        while start < len(messages):
            full = int(upto.searchsorted(upto[start] + _CHUNK_BYTES - size))
            end = min(max(full, start + 1), start + _CHUNK_ROWS - rows, len(messages))
            chunk.append(messages[start:end])
            rows += end - start
            size += int(upto[end] - upto[start])
            start = end
            if rows == _CHUNK_ROWS or size >= _CHUNK_BYTES:
                yield Messages.joined(chunk)
                chunk, rows, size = [], 0, 0
    if chunk:
        yield Messages.joined(chunk)


def _bounded(block: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield as few batches as possible. One message in the Arrow format may hold any number of rows."""
    rows = [b for b in block if b.num_rows]
    if rows:
        whole = pa.concat_batches(rows) if len(rows) > 1 else rows[0]
        for start in range(0, whole.num_rows, BATCH_ROWS):
            yield whole.slice(start, BATCH_ROWS)


def _refused(bad: BadMessage) -> Refused:
    m, reason = bad
    return Refused(m.topic, m.partition, m.offset, reason, m.value)


def _refusal(refused: BadMessage) -> str:
    m, reason = refused
    return (
        f"kafka topic {m.topic}, partition {m.partition}, offset {m.offset}: {reason}; correct schema"
        " or format, or set the input's `onError: deadLetter`, or `onBadMessage: skip` or `deadLetter`"
    )
