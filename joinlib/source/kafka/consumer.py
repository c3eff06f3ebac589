"""Reads the messages of one partition between two offsets, with one consumer per worker process and cluster.

Only committed messages are read. Offsets have gaps where a topic is compacted and where transactions end, so
a range is over when a message at or after its end arrives, or when the partition has no more.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from joinlib.broker import RETRY_S, Settings, Trouble, codes, settings
from joinlib.errors import InputError, StreamJoinError
from joinlib.source.kafka.ranges import Partition
from joinlib.spec.kafka import KafkaConnection
from joinlib.worker import Keep, current

_AT_ONCE = 10_000  # messages taken from the client at once
_WAIT_S = 0.05  # how long to wait for as many; a range with gaps takes at least so long
_GONE = codes("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")
_FINAL = codes(
    "TOPIC_AUTHORIZATION_FAILED", "_SSL", "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_BAD_MSG"
)
_END = codes("_PARTITION_EOF")


def consumer_settings(connection: KafkaConnection) -> Settings:
    """Return the settings of a consumer that commits nothing and whose memory is bounded.

    They hold secrets.
    """
    return {
        **settings(connection),
        "group.id": "streamjoin",  # required by the client; the group is never joined
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "queued.min.messages": 100_000,
        "queued.max.messages.kbytes": 32 << 10,
        "fetch.message.max.bytes": 4 << 20,
        "fetch.wait.max.ms": 10,  # at a partition's end, which delays the fetch from another one
        "fetch.error.backoff.ms": 100,
    }


class SharedConsumer:
    """The consumer of this process for one cluster."""

    def __init__(self, connection: KafkaConnection) -> None:
        self.connection = connection
        self.trouble = Trouble(connection)
        self.consumer = Consumer({**consumer_settings(connection), "error_cb": self.trouble.heard})
        self._ahead: dict[Partition, list[Message]] = {}  # what has come of partitions that are read next
        self._starts: Mapping[Partition, int] = {}

    def fetch_ahead(self, starts: Mapping[Partition, int]) -> None:
        """Fetch from several partitions at once what will be asked for next, each in its turn: few messages.

        `starts`: first offsets. One after the other, each partition costs some milliseconds.
        """
        self._starts, self._ahead = starts, {place: [] for place in starts}
        self.consumer.assign([TopicPartition(*place, start) for place, start in starts.items()])

    def messages(
        self, topic: str, partition: int, start: int, stop: int, reset: bool
    ) -> Iterator[list[Message]]:
        """Yield the messages at offsets [start, stop), in lists.

        `reset` says whether expired messages are passed over.

        Raises:
            InputError: Messages have expired and `reset` is False, or the brokers fail.
        """
        place = topic, partition
        come = self._ahead.pop(place, None)
        if come is None or self._starts[place] != start:
            come = []
            self._assign(place, start)
        try:
            yield from self._until(place, come, start, stop, reset)
        finally:
            if not self._ahead:
                with contextlib.suppress(KafkaException):
                    self.consumer.unassign()

    def _assign(self, place: Partition, start: int) -> None:
        """Fetch from one partition, and nothing ahead."""
        self._ahead = {}
        self.consumer.assign([TopicPartition(*place, start)])

    def _until(
        self, place: Partition, come: list[Message], start: int, stop: int, reset: bool
    ) -> Iterator[list[Message]]:
        topic, partition = place
        where = f"topic {topic}, partition {partition}, offset"
        at, heard, last = start, time.monotonic(), None
        while at < stop:
            found, come = come or self._own(place, min(_AT_ONCE, stop - at)), []
            events = [(e, m.offset() or 0) for m in found if (e := m.error()) is not None]
            if events:
                found = [m for m in found if m.error() is None]
            if found:
                at, heard = _offset(found[-1]) + 1, time.monotonic()
                if at > stop:
                    found = [m for m in found if _offset(m) < stop]
                yield found
            for error, offset in events:
                if error.code() in _END:
                    at = max(at, offset)
                elif error.code() in _GONE:
                    at = self._passed_over(topic, partition, at, stop, reset)
                elif error.code() in _FINAL:
                    raise self._broken(f"{where} {at}", error)
                else:
                    last = error
            if time.monotonic() - heard > RETRY_S or self.trouble.hopeless:
                raise self._broken(f"{where} {at}: nothing came for {RETRY_S:.0f} s", last)

    def _own(self, place: Partition, most: int) -> list[Message]:
        """Return what comes of a partition; keep what comes of those that are next, and drop what nobody asks for."""
        own = []
        for message in self.consumer.consume(most, _WAIT_S):
            of = message.topic(), message.partition()
            if of == place or of[0] is None:  # an error of the client itself has no topic
                own.append(message)
            elif of in self._ahead:
                self._ahead[of].append(message)
        return own

    def _broken(self, doing: str, error: KafkaError | None) -> StreamJoinError:
        """Drop this consumer and return the error. The next one reads the secrets again."""
        _consumers().take(self.connection)
        return self.trouble.error(doing, error)

    def _passed_over(self, topic: str, partition: int, at: int, stop: int, reset: bool) -> int:
        """Return the next offset that exists, where the brokers said that `at` does not; fetching goes on there."""
        low, high = self.consumer.get_watermark_offsets(TopicPartition(topic, partition), RETRY_S)
        if low <= at < high:  # it does by now: the leader was behind, or meant a topic that was made again
            self._assign((topic, partition), at)
            return at
        if not reset:
            raise InputError(
                f"kafka topic {topic}, partition {partition}: messages from offset {at} on are gone (there is {low} to"
                f" {high}); set `onMissingOffsets: reset` to go on with what there is, or start with a new checkpoint"
            )
        if not at < low < stop:
            return stop
        self._assign((topic, partition), low)
        return int(low)


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def _consumers() -> Keep[KafkaConnection, SharedConsumer]:
    return current().consumers


def source(connection: KafkaConnection) -> SharedConsumer:
    """Return this process's consumer for a cluster, made on first use."""
    return _consumers().made(connection, lambda: SharedConsumer(connection))
