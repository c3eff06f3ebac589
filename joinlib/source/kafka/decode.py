"""Decodes messages to one record batch, with one parse for all the good ones.

Law: every message becomes its rows, or is reported as bad. The values are joined by line breaks and parsed at
once. A cheap check first makes sure that each value is a row of its own, because two halves of a row in two
messages would parse too. If something does not parse, halving finds the bad messages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from joinlib.errors import InputError
from joinlib.source.changes import RowChanges
from joinlib.source.fit import check_types, fitted
from joinlib.source.kafka.bad import Bad, BadMessage
from joinlib.source.kafka.config import KafkaConfig
from joinlib.source.kafka.debezium import Envelopes
from joinlib.source.kafka.keys import FramedKeys, key_columns
from joinlib.source.kafka.messages import HEADERS, Message, Messages
from joinlib.source.kafka.registry import KEYS, reader_of
from joinlib.source.parse import PARSE_ERRORS, CsvFormat, csv_table, json_table, reason
from joinlib.source.payloads import Payloads
from joinlib.spec.kafka import About

if TYPE_CHECKING:
    from joinlib.source.kafka.framed import Framed

PLACE = "value"


@dataclass(frozen=True)
class Decoder:
    """Decodes messages of one input to some of its columns."""

    config: KafkaConfig
    schema: pa.Schema  # as declared
    columns: tuple[str, ...]  # the columns to return

    def decode(
        self, messages: Messages, *, first: bool = False
    ) -> tuple[pa.RecordBatch | None, list[BadMessage]]:
        """Return the rows of messages, in order, and the messages that cannot be decoded.

        A message without a value is no row, unless it deletes a key.

        Args:
            messages: Of one partition.
            first: Whether to look no further than the first message that cannot be decoded.
        """
        if not (self._by_key or (there := messages.values.there).all()):
            messages = messages.take(there)
        if not len(messages):
            return None, []
        try:
            return self._decoded(messages), []
        except (Bad, InputError, RecursionError, *PARSE_ERRORS) as e:
            if len(messages) == 1:
                return None, [BadMessage(messages[0], self._why(messages[0], e))]
        half, batches, bad = len(messages) // 2, list[pa.RecordBatch](), list[BadMessage]()
        for part in (messages[:half], messages[half:]):
            if not (bad and first):
                batch, found = self.decode(part, first=first)
                batches += [] if batch is None else [batch]
                bad += found
        return pa.concat_batches(batches) if batches else None, bad

    def _decoded(self, messages: Messages) -> pa.RecordBatch:
        how = self.config.changes
        if how is None:
            return fitted(PLACE, self._batch(messages, *self._parse(messages.values)), self._wanted)
        if self._envelopes is not None:
            found = self._envelopes.decode(messages.values, messages.keys)
            rows = self._read(messages, found.rows, found.counts)
            return how.settled(PLACE, rows, found.weights, self._wanted, found.masks)
        if messages.values.there.all():
            return how.changed(PLACE, self._read(messages, *self._parse(messages.values)), self._wanted)
        return self._with_deletions(how, messages)

    def _with_deletions(self, how: RowChanges, messages: Messages) -> pa.RecordBatch:
        """Return the rows of messages of which some delete their key, in the order of the messages."""
        there = messages.values.there
        live, dead = np.flatnonzero(there), np.flatnonzero(~there)
        parts, weights, order = [], [], []
        if len(live):
            having = messages.take(live)
            rows, counts = self._parse(having.values)
            batch = self._read(having, rows, counts)
            parts.append(batch)
            weights.append(how.weights(PLACE, batch))
            order.append(np.repeat(live, counts if counts is not None else 1))
        own = [self.schema.field(n) for n in how.key if n not in self.config.filled]
        deleting = messages.take(dead)
        read = key_columns if self._keys is None else self._keys.columns
        keys = read(deleting.keys, pa.schema(own)) if own else _no_columns(len(dead))
        parts.append(self._read(deleting, keys, None))
        weights.append(np.full(len(dead), -1))
        order.append(dead)
        at = np.argsort(np.concatenate(order), kind="stable")
        whole = pa.concat_batches(parts).take(pa.array(at))
        return how.settled(PLACE, whole, np.concatenate(weights)[at], self._wanted)

    def _parse(self, values: Payloads) -> tuple[pa.Table, list[int] | None]:
        """Return the rows of values, none of which is missing, and how many each has if not one."""
        if self._framed is not None:
            return self._framed.table(values, self._parsed), None
        return _PARSERS[self.config.spec.format](values, self._parsed, self.schema.names, self.config.csv)

    def _batch(self, messages: Messages, rows: pa.Table, counts: list[int] | None) -> pa.RecordBatch:
        """Return rows of messages with the columns that are filled from their metadata."""
        filled = {
            name: _for_rows(self._about(name, what, messages), counts) for name, what in self._filled.items()
        }
        whole = {**{n: rows.column(n) for n in rows.column_names}, **filled}
        names = [n for n in self._columns if n in whole] or list(whole)[:1]
        table = pa.table({n: whole[n] for n in names}).combine_chunks()
        return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)

    def _about(self, name: str, what: About, messages: Messages) -> pa.Array | pa.ChunkedArray:
        """Return the column `name`, which is filled from the metadata of messages."""
        if what == "key" and self._keys is not None:
            return self._keys.column(messages.keys, self.schema.field(name))
        return about(what, messages)

    def _read(self, messages: Messages, rows: pa.Table, counts: list[int] | None) -> pa.RecordBatch:
        """Return rows that change with all columns that are read; those that they lack are NULL."""
        batch = self._batch(messages, rows, counts)
        for field in self._readable:
            if field.name not in batch.schema.names:
                batch = batch.append_column(field, pa.nulls(batch.num_rows, field.type))
        return fitted(PLACE, batch, self._readable)

    def _why(self, message: Message, error: Exception) -> str:
        """Return why a message cannot be decoded, without its value, which the parser's error may hold."""
        if isinstance(error, (Bad, InputError)):
            return str(error)
        if isinstance(error, RecursionError):
            return "is nested too deeply"
        parser = _PARSERS[self.config.spec.format]

        def parse(text: bytes, want: pa.Schema) -> pa.Table:
            return parser(Payloads.of([text]), want, self.schema.names, self.config.csv)[0]

        return reason(parse, message.value or b"", self._parsed)

    @cached_property
    def _by_key(self) -> bool:
        """Whether a message without a value deletes its key."""
        return self.config.changes is not None and bool(self.config.changes.key)

    @cached_property
    def _envelopes(self) -> Envelopes | None:
        """The decoder of Debezium's envelopes, if the messages are some."""
        how = self.config.changes
        if self.config.spec.format != "debezium" or how is None:
            return None
        return Envelopes(self.config.spec.debezium, self.schema, self._parsed, how.key)

    @cached_property
    def _framed(self) -> "Framed | None":
        """The reader of messages whose schemas are in a registry, if these are some."""
        spec, schemas = self.config.spec, self.config.schemas
        if spec.registry is None:
            return None
        # Not needed by other formats, and half a second of imports.
        from joinlib.source.kafka.codecs import codec_of
        from joinlib.source.kafka.framed import Framed

        return Framed(spec.registry, codec_of(spec), schemas, reader_of(self.schema))

    @cached_property
    def _keys(self) -> FramedKeys | None:
        """The reader of keys whose schemas are in a registry, if these are some."""
        spec, schemas = self.config.spec, self.config.schemas
        if spec.registry is None or spec.key_format == "text":
            return None
        from joinlib.source.kafka.codecs import key_codec_of
        from joinlib.source.kafka.framed import Framed

        codec = key_codec_of(spec)
        assert codec is not None
        return FramedKeys(Framed(spec.registry, codec, schemas, reader_of(self.schema, KEYS)))

    @cached_property
    def _columns(self) -> list[str]:
        """The columns to read: those that are asked for, and what says whether a row came or went."""
        return self.config.changes.read(self.columns) if self.config.changes else list(self.columns)

    @cached_property
    def _filled(self) -> dict[str, About]:
        return {n: a for n, a in self.config.filled.items() if n in self._columns}

    @cached_property
    def _wanted(self) -> pa.Schema:
        return pa.schema([self.schema.field(c) for c in self.columns])

    @cached_property
    def _readable(self) -> pa.Schema:
        columns = pa.schema([self.schema.field(c) for c in self._columns])
        return self.config.changes.readable(columns) if self.config.changes else columns

    @cached_property
    def _parsed(self) -> pa.Schema:
        """The columns to parse from a value: all if none is wanted, so that bad messages are found."""
        own = [f for f in self.schema if f.name not in self.config.filled]
        return pa.schema([f for f in own if f.name in self._columns] or own)


def _json(values: Payloads, want: pa.Schema, names: list[str], csv: CsvFormat) -> tuple[pa.Table, None]:
    text = values.lines()
    if not (text[:1] == b"{" and text[-1:] == b"}" and text.count(b"}\n{") == len(values) - 1):
        stripped = [v.strip() for v in values if v is not None]
        if not all(v[:1] == b"{" and v[-1:] == b"}" for v in stripped):
            raise Bad("is not one JSON object")
        text = b"\n".join(stripped)
    return _each_a_row(json_table(text, want), len(values), "is not one JSON object"), None


def _csv(values: Payloads, want: pa.Schema, names: list[str], csv: CsvFormat) -> tuple[pa.Table, None]:
    text = values.lines()
    if not values.sizes.all() or text.count(b"\n") != len(values) - 1 or b"\r" in text:
        lines = [v.rstrip(b"\r\n") for v in values if v is not None]
        text = b"\n".join(lines)
        if not all(lines) or text.count(b"\n") != len(values) - 1 or b"\r" in text:
            raise Bad("is empty, or holds a line break: a CSV message is one line")
    quote = csv.quote.encode()
    if quote in text and any(line.count(quote) % 2 for line in text.split(b"\n")):
        raise Bad("has a quote that is open at its end")
    return _each_a_row(csv_table(text, want, names, csv), len(values), "is not one CSV line"), None


def _arrow(values: Payloads, want: pa.Schema, names: list[str], csv: CsvFormat) -> tuple[pa.Table, list[int]]:
    tables = []
    seen = None
    for value in values:
        table = _stream(value or b"")
        if seen is None or not table.schema.equals(seen):
            check_types(PLACE, table.schema, want)
            seen = table.schema
        columns = table.select(want.names)
        tables.append(
            columns
            if columns.schema.equals(want)
            else pa.Table.from_batches([fitted(PLACE, b, want) for b in columns.to_batches()], want)
        )
    return pa.concat_tables(tables), [t.num_rows for t in tables]


def _stream(value: bytes) -> pa.Table:
    try:
        table = pa.ipc.open_stream(value).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        raise Bad("is not a stream of Arrow record batches") from None
    return table


_Parser = Callable[[Payloads, pa.Schema, list[str], CsvFormat], tuple[pa.Table, list[int] | None]]
_PARSERS: dict[str, _Parser] = {"json": _json, "csv": _csv, "arrow": _arrow}


def _no_columns(rows: int) -> pa.Table:
    """Return rows all of whose columns come from elsewhere."""
    return pa.table({"$row": pa.nulls(rows)})


def _each_a_row(table: pa.Table, count: int, otherwise: str) -> pa.Table:
    if table.num_rows != count:
        raise Bad(otherwise)
    return table


def about(what: About | Literal["value"], messages: Messages) -> pa.Array:
    """Return a column with one property of each message.

    Raises:
        pa.ArrowInvalid: The name of a header is no text.
    """
    return _ABOUT[what](messages)


def _for_rows(column: pa.Array | pa.ChunkedArray, counts: list[int] | None) -> pa.Array | pa.ChunkedArray:
    """Return a property of each message, repeated for each of its rows."""
    if counts is None:
        return column
    at = pa.array([i for i, count in enumerate(counts) for _ in range(count)], pa.int64())
    return column.take(at)


def _headers(sent: pa.ListArray) -> pa.ListArray:
    """Return headers with names that are texts. Those of the messages beside them are left out, which might have others."""
    return sent.take(pa.array(np.arange(len(sent)))).cast(HEADERS)


_ABOUT: dict[About | Literal["value"], Callable[[Messages], pa.Array]] = {
    "key": lambda messages: messages.keys.column(),
    "timestamp": lambda messages: pa.array(
        messages.times * 1000, pa.timestamp("us", "UTC"), mask=messages.times < 0
    ),
    "topic": lambda messages: pa.repeat(messages.topic, len(messages)),
    "partition": lambda messages: pa.repeat(pa.scalar(messages.partition, pa.int32()), len(messages)),
    "offset": lambda messages: pa.array(messages.offsets),
    "value": lambda messages: messages.values.column(),
    "headers": lambda messages: _headers(messages.headers),
}
