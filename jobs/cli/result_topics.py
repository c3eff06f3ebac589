"""Reads the results in a Kafka topic again.

    append, changelog   all messages behind the offsets that were noted
    upsert              the last message of each key; one without a value, or of a row that went, is none

A message does not say of which batch it is, so offsets are noted, and the topic is read, while no transaction is open.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa

from joinlib.compiled import topics
from joinlib.errors import SpecError, StateError
from joinlib.model.changelog import BATCH, CHANGE_TYPE, DELETE, INSERT
from joinlib.sink.changelog import described
from joinlib.source.kafka import consumer
from joinlib.source.kafka.brokers import Brokers
from joinlib.source.kafka.decode import Decoder
from joinlib.source.kafka.messages import Messages
from joinlib.source.kafka.ranges import Partition
from joinlib.source.payloads import Payloads
from joinlib.spec.inputs import REGISTERED, KafkaTopics
from joinlib.spec.output import KafkaOutput, Output

# For the end of a transaction: brokers write it some milliseconds after its commit.
_PATIENCE_S, _PAUSE_S = 5.0, 0.1
Ends = Mapping[str, int]  # by partition


def ends(output: KafkaOutput) -> Ends:
    """Return where the partitions of a topic end.

    Raises:
        InputError: The brokers do not answer, or refuse.
        StateError: Somebody goes on writing to the topic.
    """
    return {str(partition): end for (_, partition), (_, end) in _settled(output).items()}


def _settled(output: KafkaOutput) -> dict[Partition, tuple[int, int]]:
    brokers = Brokers(_cluster(output).connection, [output.topic])
    until = time.monotonic() + _PATIENCE_S
    while (found := brokers.settled()) is None:
        if time.monotonic() > until:
            raise StateError(
                f"topic {output.topic}: a transaction is open, so that its rows cannot be told; stop who writes to it, and"
                " try again"
            )
        time.sleep(_PAUSE_S)
    return found


def _cluster(output: KafkaOutput) -> KafkaTopics:
    """Return the topic as an input, whose format does not matter."""
    return KafkaTopics(
        bootstrap_servers=output.bootstrap_servers, security=output.security, topic=output.topic
    )


@dataclass(frozen=True)
class TopicRows:
    """Rows of a topic, as it is now.

    Attributes:
        output: The topic, and what its messages are.
        schema: Of the results.
        since: The offsets from which it is read; None: from its beginning.
    """

    output: Output
    schema: pa.Schema
    since: Ends | None

    @property
    def columns(self) -> dict[str, pa.DataType]:
        return {field.name: field.type for field in self.schema}

    def tables(self, columns: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, with the columns of a changelog if the messages say what happened to them.

        Raises:
            InputError: The brokers do not answer, or refuse.
            StateError: Messages are gone that would be needed.
            SpecError: The messages cannot be read again.
        """
        for place, (low, end) in _settled(self._kafka).items():
            found = self._messages(place, self._start(place, low), end)
            if self.output.mode == "upsert":
                found = _latest(found)
            if found is not None and len(found):
                yield self._decoded(found, columns)

    @property
    def _kafka(self) -> KafkaOutput:
        assert self.output.kafka is not None
        return self.output.kafka

    def _start(self, place: Partition, low: int) -> int:
        if self.since is None:
            return low
        start = self.since.get(str(place[1]), 0)
        if start < low:
            raise StateError(
                f"topic {place[0]}, partition {place[1]}: messages behind offset {start}, where one job was forked from the"
                " other, are gone; fork again, and compare before they expire"
            )
        return start

    def _messages(self, place: Partition, start: int, stop: int) -> Messages | None:
        source = consumer.source(_cluster(self._kafka).connection)
        parts = [part for part in source.messages(place, start, stop, False, False) if len(part)]
        return Messages.joined(parts) if parts else None

    def _decoded(self, found: Messages, columns: pa.Schema) -> pa.Table:
        if self._kafka.format == "debezium":
            values, words = _unpacked(found, upsert=self.output.mode == "upsert")
            rows = self._rows(_of_values(found, values), columns)
            if self.output.mode == "upsert":
                return rows
            numbers = pa.nulls(rows.num_rows, pa.int64())
            return rows.append_column(CHANGE_TYPE, pa.array(words)).append_column(BATCH, numbers)
        whole = described(columns) if self.output.mode == "changelog" else columns
        return self._rows(found, whole)

    def _rows(self, found: Messages, columns: pa.Schema) -> pa.Table:
        if not len(found):
            return columns.empty_table()
        rows, bad = self._decoder(columns).decode(found, first=True)
        if bad:
            message, reason = bad[0]
            raise SpecError(
                f"topic {message.topic}, partition {message.partition}, offset {message.offset}: {reason}; compare with a"
                " topic that only the job writes to, and with the output's format as it was"
            )
        return pa.table(rows)

    def _decoder(self, columns: pa.Schema) -> Decoder:
        csv = self._kafka.format == "csv"
        declared = self._all if csv else columns
        return Decoder(topics("output", self._as_input, Path()), declared, tuple(columns.names))

    @cached_property
    def _all(self) -> pa.Schema:
        """The columns of a message."""
        return described(self.schema) if self.output.mode == "changelog" else self.schema

    @cached_property
    def _as_input(self) -> KafkaTopics:
        """The topic, and what its messages are, as an input."""
        kind = "json" if self._kafka.format == "debezium" else self._kafka.format
        if kind in REGISTERED:
            raise SpecError(
                f"topic {self._kafka.topic}: messages of format {kind} are not read again; compare by a consumer of your"
                " own, or write json, csv, arrow or debezium"
            )
        return _cluster(self._kafka).model_copy(update={"format": kind})


def _latest(found: Messages | None) -> Messages | None:
    """Return the last message of each key, if it has a value."""
    if found is None:
        return None
    last = {key: at for at, key in enumerate(found.keys)}
    kept = found.take(np.fromiter(sorted(last.values()), np.int64, len(last)))
    return kept.take(kept.values.there)


def _unpacked(found: Messages, *, upsert: bool) -> tuple[list[bytes], list[str]]:
    """Return the rows in messages of Debezium, as JSON, and what happened to each."""
    values: list[bytes] = []
    words: list[str] = []
    for text in found.values:
        said = orjson.loads(text) if text is not None else {}
        for field, word in (("before", DELETE), ("after", INSERT)):
            if said.get(field) is not None and not (upsert and word == DELETE):
                values.append(orjson.dumps(said[field]))
                words.append(word)
    return values, words


def _of_values(like: Messages, values: list[bytes]) -> Messages:
    """Return messages of these values; where they are does not matter."""
    count = len(values)
    nothing = np.zeros(count, np.int64)
    return Messages(
        like.topic,
        like.partition,
        nothing,
        nothing,
        Payloads.of([None] * count),
        Payloads.of(values),
        pa.nulls(count, like.headers.type),
    )
