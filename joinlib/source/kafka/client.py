"""A consumer of librdkafka, by the library's own functions: it takes messages in columns.

A queue is emptied at once: the library says where its messages are, and a kernel copies their bytes.
"""

import ctypes
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from joinlib.arrays import I64
from joinlib.broker import Settings
from joinlib.librdkafka import CONSUMER, address, check, library, made, offsets
from joinlib.source.kafka import kernel as k
from joinlib.source.kafka.messages import AS_SENT, Messages
from joinlib.source.kafka.ranges import Partition
from joinlib.source.payloads import Payloads

MOST = 10_000  # messages taken at once
_UNCLOSED = 8  # a constant of rdkafka.h


@dataclass(frozen=True)
class PartitionEvent:
    """What the client says of a partition, or of itself, between messages."""

    error: KafkaError
    offset: int


@dataclass(frozen=True)
class Fetched:
    """What has come of one partition, or of the client itself (`place` None), in its order."""

    place: Partition | None
    messages: Messages | None
    events: tuple[PartitionEvent, ...]


class Client:
    """A consumer that is assigned partitions; it has no group. Freed with the last reference to it."""

    def __init__(self, settings: Settings, heard: Callable[[KafkaError], None]) -> None:
        """Make a client. `heard` is told its errors while something is fetched.

        Raises:
            KafkaException: The settings are none.
        """
        self._client, kept = made(CONSUMER, settings, heard)
        library().poll_set_consumer(self._client)
        self._queue = library().queue_get_consumer(self._client)
        self._room = np.zeros(MOST, np.int64)
        weakref.finalize(self, _freed, self._client, self._queue, kept).atexit = False

    def assign(self, starts: Mapping[Partition, int]) -> None:
        """Fetch from partitions, each from its offset on, and from no others.

        Raises:
            KafkaException: It refuses.
        """
        with offsets(starts) as places:
            check(library().assign(self._client, places))

    def unassign(self) -> None:
        """Fetch from no partition.

        Raises:
            KafkaException: It refuses.
        """
        check(library().assign(self._client, None))

    def reach(self, place: Partition, patience_s: float) -> tuple[int, int]:
        """Return the first offset of a partition, and the one behind its last.

        Raises:
            KafkaException: The brokers do not say.
        """
        low, high = ctypes.c_int64(), ctypes.c_int64()
        asked = library().query_watermark_offsets
        topic, partition = place
        check(asked(self._client, topic.encode(), partition, low, high, int(1000 * patience_s)))
        return low.value, high.value

    def fetched(self, most: int, patience_s: float, headers: bool) -> list[Fetched]:
        """Return messages and events, once there are so many or time is up.

        Args:
            most: At most so many, and no more than MOST.
            patience_s: How long to wait for as many, in seconds.
            headers: Whether messages have their headers.

        Raises:
            KafkaException: The client has failed.
        """
        of = library()
        room = self._room.ctypes.data
        count = of.consume_batch_queue(self._queue, int(1000 * patience_s), room, min(most, MOST))
        if count < 0:
            check(of.last_error())
        messages = self._room[: max(count, 0)]
        try:
            return _read(messages, headers)
        finally:
            k.released(messages, address("message_destroy"))


def _read(messages: I64, headers: bool) -> list[Fetched]:
    """Return what messages hold, by partition."""
    fields = np.empty((len(messages), k.FIELDS), np.int64)
    k.opened(messages, address("message_timestamp"), np.zeros(1, np.int64), fields)
    found = []
    left = np.arange(len(messages))
    while len(left):
        topic, partition = (int(n) for n in fields[left[0], [k.TOPIC, k.PARTITION]])
        place = (library().topic_name(topic).decode(), partition) if topic else None
        same = (fields[left, k.TOPIC] == topic) & (fields[left, k.PARTITION] == partition)
        found.append(_fetched(place, messages, fields, left[same], headers))
        left = left[~same]
    return found


def _fetched(place: Partition | None, messages: I64, fields: I64, own: I64, headers: bool) -> Fetched:
    """Return what has come of a partition. `own`: which of the messages."""
    failed = fields[own, k.ERROR] != 0
    events = tuple(_event(fields[at]) for at in own[failed])
    own = own[~failed]
    if place is None or not len(own):
        return Fetched(place, None, events)
    of = fields[own]
    return Fetched(
        place,
        Messages(
            *place,
            of[:, k.OFFSET].copy(),
            of[:, k.TIME].copy(),
            Payloads.copied(of[:, k.KEY].copy(), of[:, k.KEY_SIZE].copy()),
            Payloads.copied(of[:, k.VALUE].copy(), of[:, k.SIZE].copy()),
            _headers(messages[own]) if headers else pa.nulls(len(own), AS_SENT),
        ),
        events,
    )


def _event(fields: I64) -> PartitionEvent:
    """Return an event. What it says stands in the place of a value."""
    code, text = int(fields[k.ERROR]), b""
    if fields[k.SIZE] > 0:
        text = ctypes.string_at(int(fields[k.VALUE]), int(fields[k.SIZE])).rstrip(b"\0")
    return PartitionEvent(KafkaError(code, text.decode(errors="replace") or None), int(fields[k.OFFSET]))


def _headers(messages: I64) -> pa.ListArray:
    lists, counts, room = np.empty_like(messages), np.empty_like(messages), np.zeros(3, np.int64)
    k.counted(messages, address("message_headers"), address("header_cnt"), room, lists, counts)
    places = np.empty((int(counts.sum()), 4), np.int64)
    k.listed(lists, counts, address("header_get_all"), room, places)
    names, values = (
        Payloads.copied(places[:, at].copy(), places[:, at + 1].copy()).column() for at in (0, 2)
    )
    ends = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    pairs = pa.StructArray.from_arrays([names, values], fields=list(AS_SENT.value_type))
    return pa.ListArray.from_arrays(ends, pairs)


def _freed(client: int, queue: int, kept: object) -> None:
    """Free a client. It was in no group, so there is nothing to leave."""
    library().queue_destroy(queue)
    library().destroy_flags(client, _UNCLOSED)
