"""A consumer of librdkafka, by the library's own functions: it takes messages in columns.

The package that brings the library makes an object for each message, and one more for each question about it, which
takes longer than to read the message. Here a queue is emptied at once: the library says where its messages are, and a
kernel copies their bytes. Both know nothing of each other: this is a client of its own.
"""

import ctypes
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, cimpl

from joinlib.arrays import I64
from joinlib.broker import Settings
from joinlib.source.kafka import kernel as k
from joinlib.source.kafka.messages import AS_SENT, Messages
from joinlib.source.kafka.ranges import Partition
from joinlib.source.payloads import Payloads

MOST = 10_000  # messages taken at once
_CONSUMER, _SET, _UNCLOSED = 1, 0, 8  # constants of rdkafka.h
_TEXT_BYTES = 512
_WORD, _INT, _BYTES = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_LONG = ctypes.c_int64
_HEARD = ctypes.CFUNCTYPE(None, _WORD, _INT, _BYTES, _WORD)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "conf_new": (_WORD, []),
    "conf_set": (_INT, [_WORD, _BYTES, _BYTES, _BYTES, ctypes.c_size_t]),
    "conf_set_error_cb": (None, [_WORD, _HEARD]),
    "conf_destroy": (None, [_WORD]),
    "new": (_WORD, [_INT, _WORD, _BYTES, ctypes.c_size_t]),
    "poll_set_consumer": (_INT, [_WORD]),
    "queue_get_consumer": (_WORD, [_WORD]),
    "queue_destroy": (None, [_WORD]),
    "destroy_flags": (None, [_WORD, _INT]),
    "topic_partition_list_new": (_WORD, [_INT]),
    "topic_partition_list_add": (_WORD, [_WORD, _BYTES, ctypes.c_int32]),
    "topic_partition_list_set_offset": (_INT, [_WORD, _BYTES, ctypes.c_int32, _LONG]),
    "topic_partition_list_destroy": (None, [_WORD]),
    "assign": (_INT, [_WORD, _WORD]),
    "consume_batch_queue": (ctypes.c_ssize_t, [_WORD, _INT, _WORD, ctypes.c_size_t]),
    "query_watermark_offsets": (
        _INT,
        [_WORD, _BYTES, ctypes.c_int32, ctypes.POINTER(_LONG), ctypes.POINTER(_LONG), _INT],
    ),
    "topic_name": (_BYTES, [_WORD]),
    "last_error": (_INT, []),
    "err2str": (_BYTES, [_INT]),
    "message_timestamp": (_LONG, [_WORD, _WORD]),
    "message_headers": (_INT, [_WORD, _WORD]),
    "header_cnt": (ctypes.c_size_t, [_WORD]),
    "header_get_all": (_INT, [_WORD, ctypes.c_size_t, _WORD, _WORD, _WORD]),
    "message_destroy": (None, [_WORD]),
}


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

        def tell(client: int, code: int, why: bytes | None, own: int) -> None:
            heard(KafkaError(code, (why or b"").decode(errors="replace")))

        self._tell = _HEARD(tell)  # as long as the client may call it
        self._client = _made(settings, self._tell)
        _library().poll_set_consumer(self._client)
        self._queue = _library().queue_get_consumer(self._client)
        self._room = np.zeros(MOST, np.int64)
        weakref.finalize(self, _freed, self._client, self._queue, self._tell).atexit = False

    def assign(self, starts: Mapping[Partition, int]) -> None:
        """Fetch from partitions, each from its offset on, and from no others.

        Raises:
            KafkaException: It refuses.
        """
        of = _library()
        places = of.topic_partition_list_new(len(starts))
        try:
            for (topic, partition), offset in starts.items():
                of.topic_partition_list_add(places, topic.encode(), partition)
                of.topic_partition_list_set_offset(places, topic.encode(), partition, offset)
            _check(of.assign(self._client, places))
        finally:
            of.topic_partition_list_destroy(places)

    def unassign(self) -> None:
        """Fetch from no partition.

        Raises:
            KafkaException: It refuses.
        """
        _check(_library().assign(self._client, None))

    def reach(self, place: Partition, patience_s: float) -> tuple[int, int]:
        """Return the first offset of a partition, and the one behind its last.

        Raises:
            KafkaException: The brokers do not say.
        """
        low, high = _LONG(), _LONG()
        asked = _library().query_watermark_offsets
        topic, partition = place
        _check(asked(self._client, topic.encode(), partition, low, high, int(1000 * patience_s)))
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
        of = _library()
        room = self._room.ctypes.data
        count = of.consume_batch_queue(self._queue, int(1000 * patience_s), room, min(most, MOST))
        if count < 0:
            _check(of.last_error())
        messages = self._room[: max(count, 0)]
        try:
            return _read(messages, headers)
        finally:
            k.released(messages, _address("message_destroy"))


def _read(messages: I64, headers: bool) -> list[Fetched]:
    """Return what messages hold, by partition."""
    fields = np.empty((len(messages), k.FIELDS), np.int64)
    k.opened(messages, _address("message_timestamp"), np.zeros(1, np.int64), fields)
    found = []
    left = np.arange(len(messages))
    while len(left):
        topic, partition = (int(n) for n in fields[left[0], [k.TOPIC, k.PARTITION]])
        place = (_library().topic_name(topic).decode(), partition) if topic else None
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
    k.counted(messages, _address("message_headers"), _address("header_cnt"), room, lists, counts)
    places = np.empty((int(counts.sum()), 4), np.int64)
    k.listed(lists, counts, _address("header_get_all"), room, places)
    names, values = (
        Payloads.copied(places[:, at].copy(), places[:, at + 1].copy()).column() for at in (0, 2)
    )
    ends = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    pairs = pa.StructArray.from_arrays([names, values], fields=list(AS_SENT.value_type))
    return pa.ListArray.from_arrays(ends, pairs)


def _made(settings: Settings, tell: Any) -> int:
    of, text = _library(), ctypes.create_string_buffer(_TEXT_BYTES)
    conf = of.conf_new()
    for name, value in settings.items():
        said = str(value).lower() if isinstance(value, bool) else str(value)
        if of.conf_set(conf, name.encode(), said.encode(), text, _TEXT_BYTES) != _SET:
            of.conf_destroy(conf)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text.value.decode(errors="replace")))
    of.conf_set_error_cb(conf, tell)
    if client := of.new(_CONSUMER, conf, text, _TEXT_BYTES):
        return int(client)
    code = of.last_error()
    of.conf_destroy(conf)
    raise KafkaException(KafkaError(code, text.value.decode(errors="replace")))


def _freed(client: int, queue: int, tell: Any) -> None:
    """Free a client. It was in no group, so there is nothing to leave. `tell` is kept until then."""
    _library().queue_destroy(queue)
    _library().destroy_flags(client, _UNCLOSED)


def _check(code: int) -> None:
    if code:
        raise KafkaException(KafkaError(code, _library().err2str(code).decode()))


class _Library:
    """Functions by their names without `rd_kafka_`."""

    def __init__(self) -> None:
        # The extension and what it is linked with, wherever that is.
        found = ctypes.CDLL(cimpl.__file__)
        for name, (result, given) in _FUNCTIONS.items():
            function = getattr(found, f"rd_kafka_{name}", None)
            if function is None:
                raise ImportError(
                    f"{cimpl.__file__} hides rd_kafka_{name}; install confluent-kafka's own wheel"
                )
            function.restype, function.argtypes = result, given
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for mypy: all of them are set above
        raise AttributeError(name)


@cache
def _library() -> _Library:
    return _Library()


@cache
def _address(name: str) -> int:
    """Return where a function is."""
    return int(ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0)
