"""What the brokers hold: partitions, their offsets, the size of their messages. For the driver; read-only."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec
from tenacity import wait_fixed

from joinlib.broker import PATIENCE_S, RETRY_S, Settings, Trouble, codes, settings
from joinlib.retry import patiently
from joinlib.source.kafka.consumer import consumer_settings
from joinlib.source.kafka.ranges import Partition
from joinlib.spec.kafka import KafkaConnection

_EARLIEST, _LATEST = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
_ASK_S = 2.0  # per request; the client's own errors are checked in between
_PAUSE = wait_fixed(0.2)
_REFRESH_S = 2.0  # new partitions are noticed after so long
_SAMPLE = 64  # messages
_SAMPLE_S = 2.0
_UNKNOWN_BYTES = 1024  # assumed size of a message, if none could be sampled
_OVERHEAD_BYTES = 128  # memory per message, besides key and value
_FAILED = KafkaException, TimeoutError
# A partition without a leader, as just after its topic was made or a broker was lost: it will have one. The
# client calls none of these `retriable()`, a word that it keeps for transactions.
_PASSING = codes(
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "REPLICA_NOT_AVAILABLE",
    "BROKER_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
    "NETWORK_EXCEPTION",
    "REQUEST_TIMED_OUT",
)
T = TypeVar("T")


class Brokers:
    """A cluster and the topics that are read. Connects on first use."""

    def __init__(self, connection: KafkaConnection, topics: Sequence[str]) -> None:
        self.connection, self.topics = connection, topics
        self._trouble = Trouble(connection)
        self._partitions: list[Partition] = []
        self.ids: dict[str, str] = {}  # topic ids by name, as of the last refresh
        self._looked = 0.0
        self._met = False

    def ends(self) -> dict[Partition, tuple[int, int]]:
        """Return the first offset of each partition, and the one that the next committed message will have.

        Raises:
            InputError: The brokers do not answer, or refuse.
        """
        return self._patiently(f"offsets of {', '.join(self.topics)}", self._ends)

    def settled(self) -> dict[Partition, tuple[int, int]] | None:
        """Return the same as `ends`, once no transaction is open in the topics; None while one is.

        Raises:
            InputError: The brokers do not answer, or refuse.
        """
        found = self.ends()
        highs = self._patiently(f"offsets of {', '.join(self.topics)}", self._highs)
        return found if highs == {place: end for place, (_, end) in found.items()} else None

    def sizes(self, points: Mapping[str, Iterable[tuple[int, int]]]) -> dict[str, int]:
        """Return the mean bytes of a message by topic, sampled at a few points (partition, offset)."""
        found = {}
        for topic, places in points.items():
            means = [self._mean(topic, *place) for place in places]
            found[topic] = max((m for m in means if m), default=_UNKNOWN_BYTES)
        return found

    def _ends(self, seconds: float) -> dict[Partition, tuple[int, int]]:
        if time.monotonic() - self._looked > _REFRESH_S:
            found = self._admin.describe_topics(TopicCollection(list(self.topics)), request_timeout=seconds)
            topics = {name: future.result(seconds + 1) for name, future in found.items()}
            self._partitions = [(name, p.id) for name, t in topics.items() for p in t.partitions]
            self.ids = {name: id for name, t in topics.items() if (id := _id(t.topic_id))}
            self._looked = time.monotonic()
        low, high = (self._offsets(spec, seconds) for spec in (_EARLIEST, _LATEST))
        lows, highs = _results(low, seconds), _results(high, seconds)
        return {p: (lows[p], highs[p]) for p in self._partitions}

    def _highs(self, seconds: float) -> dict[Partition, int]:
        """Return the offset behind the last message of each partition, committed or not."""
        return _results(self._offsets(_LATEST, seconds, IsolationLevel.READ_UNCOMMITTED), seconds)

    def _offsets(
        self, spec: OffsetSpec, seconds: float, level: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> dict[TopicPartition, "Future[Any]"]:
        """Request offsets. Where transactions are still open, the latest committed one is the one before them."""
        asked = {TopicPartition(*p): spec for p in self._partitions}
        found: dict[TopicPartition, Future[Any]] = self._admin.list_offsets(
            asked, isolation_level=level, request_timeout=seconds
        )
        return found

    def _patiently(self, doing: str, ask: Callable[[float], T]) -> T:
        """Retry a request until it is answered: for seconds, or longer once the brokers have answered."""
        patience_s = RETRY_S if self._met else PATIENCE_S
        try:
            answer = patiently(
                lambda left: ask(max(min(left, _ASK_S), 0.5)), self._passing, patience_s, _PAUSE
            )
        except _FAILED as error:
            raise self._trouble.error(doing, _cause(error)) from None
        self._met = True
        return answer

    def _passing(self, error: BaseException) -> bool:
        """Return whether to ask again. Until a request has succeeded, a refusal is the user's mistake."""
        if not isinstance(error, _FAILED):
            return False
        self._admin.poll(0)  # report errors that the client has met meanwhile, such as a refused password
        if self._trouble.hopeless:
            return False
        cause = _cause(error)
        return self._met or cause is None or cause.code() in _PASSING or cause.code() <= 0

    def _mean(self, topic: str, partition: int, offset: int) -> int | None:
        self._consumer.assign([TopicPartition(topic, partition, offset)])
        try:
            messages = self._some()
        finally:
            self._consumer.unassign()
        if not messages:
            return None
        total = sum(len(m.value() or b"") + len(m.key() or b"") for m in messages)
        return total // len(messages) + _OVERHEAD_BYTES

    def _some(self) -> list[Message]:
        until = time.monotonic() + _SAMPLE_S
        while time.monotonic() < until:
            found = self._consumer.consume(_SAMPLE, 0.02)
            messages = [m for m in found if m.error() is None]
            if found:  # possibly only the end of the partition
                return messages
        return []

    @cached_property
    def _admin(self) -> AdminClient:
        found: Settings = {**settings(self.connection), "error_cb": self._trouble.heard}
        return AdminClient(found)

    @cached_property
    def _consumer(self) -> Consumer:
        return Consumer({**consumer_settings(self.connection), "queued.max.messages.kbytes": 1024})


def _cause(error: BaseException) -> KafkaError | None:
    return error.args[0] if error.args and isinstance(error.args[0], KafkaError) else None


def _id(id: Any) -> str:
    """Return a `Uuid` in hexadecimal; empty if the broker knows none (before Kafka 2.8)."""
    high, low = id.get_most_significant_bits(), id.get_least_significant_bits()
    return f"{high % 2**64:016x}{low % 2**64:016x}" if high or low else ""


def _results(futures: dict[TopicPartition, "Future[Any]"], seconds: float) -> dict[Partition, int]:
    """Return the offsets. A broker that is coming back may answer without one, which counts as no answer."""
    found = {(p.topic, p.partition): int(f.result(seconds + 1).offset) for p, f in futures.items()}
    if min(found.values(), default=0) < 0:
        raise TimeoutError
    return found
