"""Reads the messages of one partition between two offsets, with one consumer per worker process and cluster.

Only committed messages are read. Offsets have gaps where a topic is compacted and where transactions end, so
a range is over when a message at or after its end arrives, or when the partition has no more.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError, KafkaException

from joinlib.broker import RETRY_S, Settings, Trouble, codes, settings
from joinlib.errors import InputError, StreamJoinError
from joinlib.source.kafka.client import MOST, Client, Fetched
from joinlib.source.kafka.messages import Messages
from joinlib.source.kafka.ranges import Partition
from joinlib.spec.kafka import KafkaConnection
from joinlib.worker import Keep, current

_WAIT_S = 0.05  # how long to wait for as many messages as are asked for
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
        "fetch.queue.backoff.ms": 5,  # while the queue is full; by default a second, so that it runs empty meanwhile
    }


class SharedConsumer:
    """The consumer of this process for one cluster."""

    def __init__(self, connection: KafkaConnection) -> None:
        self.connection = connection
        self.trouble = Trouble(connection)
        self.client = Client(consumer_settings(connection), self.trouble.heard)
        self._ahead: dict[Partition, list[Fetched]] = {}  # what has come of partitions that are read next
        self._starts: Mapping[Partition, int] = {}
        self._headers = False

    def fetch_ahead(self, starts: Mapping[Partition, int], headers: bool) -> None:
        """Fetch from several partitions at once what will be asked for next, each in its turn: few messages.

        `starts`: first offsets. One after the other, each partition costs some milliseconds.
        """
        self._starts, self._ahead, self._headers = starts, {place: [] for place in starts}, headers
        self.client.assign(starts)

    def messages(
        self, place: Partition, start: int, stop: int, reset: bool, headers: bool
    ) -> Iterator[Messages]:
        """Yield the messages of a partition at offsets [start, stop), some at a time.

        Args:
            place: Topic and partition.
            start: The first offset.
            stop: The offset behind the last.
            reset: Whether expired messages are passed over.
            headers: Whether messages have their headers.

        Raises:
            InputError: Messages have expired and `reset` is False, or the brokers fail.
        """
        come = self._ahead.pop(place, None)
        if come is None or self._starts[place] != start or headers > self._headers:
            come = []
            self._headers = headers
            self._assign(place, start)
        try:
            yield from self._until(place, come, start, stop, reset)
        finally:
            if not self._ahead:
                with contextlib.suppress(KafkaException):
                    self.client.unassign()

    def _assign(self, place: Partition, start: int) -> None:
        """Fetch from one partition, and nothing ahead."""
        self._ahead = {}
        self.client.assign({place: start})

    def _until(
        self, place: Partition, come: list[Fetched], start: int, stop: int, reset: bool
    ) -> Iterator[Messages]:
        where = f"topic {place[0]}, partition {place[1]}, offset"
        at, heard, last = start, time.monotonic(), None
        while at < stop:
            found, come = come or self._own(place, min(MOST, stop - at)), []
            for one in found:
                if one.messages is not None:
                    end = int(one.messages.offsets.searchsorted(stop))
                    at, heard = int(one.messages.offsets[-1]) + 1, time.monotonic()
                    yield one.messages[:end]
            for error, offset in [(e.error, e.offset) for one in found for e in one.events]:
                if error.code() in _END:
                    at = max(at, offset)
                elif error.code() in _GONE:
                    at = self._passed_over(place, at, stop, reset)
                elif error.code() in _FINAL:
                    raise self._broken(f"{where} {at}", error)
                else:
                    last = error
            if time.monotonic() - heard > RETRY_S or self.trouble.hopeless:
                raise self._broken(f"{where} {at}: nothing came for {RETRY_S:.0f} s", last)

    def _own(self, place: Partition, most: int) -> list[Fetched]:
        """Return what comes of a partition; keep what comes of those that are next, and drop what nobody asks for."""
        own = []
        for fetched in self.client.fetched(most, _WAIT_S, self._headers):
            if fetched.place in (place, None):  # an error of the client itself has no topic
                own.append(fetched)
            elif fetched.place in self._ahead:
                self._ahead[fetched.place].append(fetched)
        return own

    def _broken(self, doing: str, error: KafkaError | None) -> StreamJoinError:
        """Drop this consumer and return the error. The next one reads the secrets again."""
        _consumers().take(self.connection)
        return self.trouble.error(doing, error)

    def _passed_over(self, place: Partition, at: int, stop: int, reset: bool) -> int:
        """Return the next offset that exists, where the brokers said that `at` does not; fetching goes on there."""
        low, high = self.client.reach(place, RETRY_S)
        if low <= at < high:  # it does by now: the leader was behind, or meant a topic that was made again
            self._assign(place, at)
            return at
        if not reset:
            raise InputError(
                f"kafka topic {place[0]}, partition {place[1]}: messages from offset {at} on are gone (there is {low} to"
                f" {high}); set `onMissingOffsets: reset` to go on with what there is, or start with a new checkpoint"
            )
        if not at < low < stop:
            return stop
        self._assign(place, low)
        return low


def _consumers() -> Keep[KafkaConnection, SharedConsumer]:
    return current().consumers


def source(connection: KafkaConnection) -> SharedConsumer:
    """Return this process's consumer for a cluster, made on first use."""
    return _consumers().made(connection, lambda: SharedConsumer(connection))
