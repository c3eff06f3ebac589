"""A transactional producer of one partition, and the marker that says which batches are in the topic.

    id and group   streamjoin-CHECKPOINT-PARTITION
    marker         the group's offset of partition 0 of the topic: the first batch that is not in it

The marker moves in the same transaction that carries the rows, so both are there or neither. Opening a
producer fences all older ones of its id: their transactions are aborted or, if already committed, their
marker is seen. An open producer is worth keeping (opening takes 60 ms). Whether another one
has been opened since shows when the marker is moved, so that is the first step of every transaction.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tenacity import wait_fixed

from joinlib.broker import Settings, codes, settings
from joinlib.errors import NotReady, SpecError, StreamJoinError
from joinlib.retry import patiently
from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.client import ProducerClient, Reports
from joinlib.sink.kafka.messages import Outgoing, too_large
from joinlib.spec import duration

PATIENCE_S = 120.0  # for a broker that goes away during a run; a restart takes 10 to 60 s
_QUEUE, _QUEUE_KB, _CHUNK = 100_000, 64 * 1024, 5_000
_AGAIN_S, _GRACE_S = 0.1, 5.0
_SILENT = logging.getLogger(__name__)  # important errors are raised; a fenced producer is expected
_SILENT.disabled = True
T = TypeVar("T")

_PASSING = codes(
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "UNSTABLE_OFFSET_COMMIT",
    "CONCURRENT_TRANSACTIONS",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "_TRANSPORT",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_MSG_TIMED_OUT",
    "_ALL_BROKERS_DOWN",
    "_WAIT_COORD",
)
_FENCED = codes("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")


class TransactionalProducer:
    """Opened by `open`; then `begin`, `produce` and `commit` for each batch.

    Not to be used again after a failure.
    """

    def __init__(self, target: KafkaSinkConfig, partition: int | str, patience_s: float = PATIENCE_S) -> None:
        self.target, self.name, self._patience_s = target, f"streamjoin-{target.job}-{partition}", patience_s
        self._reports = Reports(target.spec)
        self._begun = math.inf  # when the current transaction began
        own = settings(target.spec)
        self._producer = ProducerClient(own | _producing(self.name, target), target.topic, self._reports)
        # The group never has a live member; this consumer only reads its offset. (An AdminClient that reads
        # offsets crashes while their broker changes: librdkafka 2.16 mistakes it for a consumer.) It connects
        # while the producer does.
        self.settings = own | {"error_cb": self._reports.heard, "logger": _SILENT}
        self._group = Consumer(self.settings | {"group.id": self.name, "enable.auto.commit": False})

    def open(self) -> int | None:
        """Fence all other producers of this name; return the marker, None if there is none."""
        try:
            self.persist("beginning transactions", self._producer.init_transactions)
            return self.persist("reading its group's offset", self._marker)
        finally:
            self._group.close()

    @property
    def sound(self) -> bool:
        """Whether it may be used again.

        A client that lost a broker may wait forever for the next (librdkafka 2.16).
        """
        self._producer.poll(0)
        return not self._reports.shaken

    def begin(self, marker: int) -> None:
        """Begin a transaction that moves the marker to `marker`."""
        self._producer.begin_transaction()
        self._begun = time.monotonic()
        self.persist(
            "moving its group's offset",
            lambda seconds: self._producer.send_offset(self.name, marker, seconds),
        )

    def produce(self, sent: Outgoing) -> None:
        """Queue messages in order; wait while the queue is full."""
        for start in range(0, len(sent), _CHUNK):
            self._queue(sent[start : start + _CHUNK])

    def flush(self) -> None:
        """Wait until all produced messages are at the brokers."""
        left = self._producer.flush(self._patience_s)
        if left and self._reports.failed is None:
            raise self.error("writing", None)
        self._check()

    def commit(self) -> None:
        self.persist("committing", self._producer.commit_transaction)

    def abort(self) -> None:
        self.persist("aborting", self._producer.abort_transaction)

    def error(self, doing: str, cause: KafkaError | None) -> StreamJoinError:
        """Return the error to raise: NotReady if trying again may help, otherwise SpecError."""
        if cause is not None and cause.code() in _FENCED:
            if time.monotonic() - self._begun > self.target.spec.transaction_timeout_us / 1e6:
                return _too_long(self.target)
            return NotReady(
                f"kafka: topic {self.target.topic}: another run of this checkpoint has taken over"
            )
        text = str(self._reports.trouble.error(f"output topic {self.target.topic}, {doing}", cause))
        passing = cause is None or cause.code() in _PASSING
        return NotReady(text) if passing and not self._reports.trouble.hopeless else SpecError(text)

    def _queue(self, sent: Outgoing) -> None:
        """Queue messages, and those for which there was no room once there is some."""
        end = time.monotonic() + self._patience_s
        while True:
            self._check()
            try:
                sent = sent[self._producer.produce(sent) :]
            except KafkaException as failed:
                if failed.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise too_large(self.target, sent.largest()) from None
                raise self.error("writing", failed.args[0]) from None
            if not len(sent):
                return
            self._producer.poll(_AGAIN_S)
            if time.monotonic() > end:
                raise self.error("writing", None)

    def _check(self) -> None:
        """Raise if a message has failed for good."""
        if self._reports.failed is not None:
            raise self.error("writing", self._reports.failed)

    def _marker(self, seconds: float) -> int | None:
        """Return the committed marker. Waits while a transaction that moves it is being committed."""
        (found,) = self._group.committed([TopicPartition(self.target.topic, 0)], seconds)
        if found.error is not None:
            raise KafkaException(found.error)
        return found.offset if found.offset >= 0 else None

    def persist(self, doing: str, call: Callable[[float], T], patience_s: float | None = None) -> T:
        """Retry `call` after errors that may pass: a broker that restarts, a coordinator that moves.

        Args:
            doing: What the call does, for errors.
            call: The call; its argument is the time limit in seconds.
            patience_s: How long to retry before the error is raised; by default the producer's.

        Raises:
            NotReady: The error may pass, but has not in time.
            SpecError: The brokers refuse.
        """
        try:
            return patiently(
                lambda left: _bounded(call, max(left, 1.0)),
                self._passing,
                patience_s or self._patience_s,
                wait_fixed(_AGAIN_S),
                sleep=self._producer.poll,
            )
        except KafkaException as failed:
            raise self.error(doing, failed.args[0]) from None

    def _passing(self, failed: BaseException) -> bool:
        """Return whether the same call may succeed later."""
        if not isinstance(failed, KafkaException) or self._reports.trouble.hopeless:
            return False
        error: KafkaError = failed.args[0]
        return (error.retriable() or error.code() in _PASSING) and not error.fatal()


def _bounded(call: Callable[[float], T], seconds: float) -> T:
    """Return the result of a client call within our own time limit: the client may ignore its time-out."""
    try:
        return beside(lambda: call(seconds)).result(seconds + _GRACE_S)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


def beside(call: Callable[[], T]) -> Future[T]:
    """Return what a call will return or raise, which is made by a thread of its own."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised by who asks for the result
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer


def _too_long(target: KafkaSinkConfig) -> SpecError:
    """Return the error for a transaction that the broker has aborted because it took too long.

    The client reports it as if another producer had come. Time that the machine slept is not counted.
    """
    limit = duration.text(target.spec.transaction_timeout_us)
    return SpecError(
        f"output topic {target.topic}: a task took longer than output.kafka.transactionTimeout, {limit}, from its first row to"
        " its last, so the brokers have aborted its transaction (none of its rows are there); raise that, and the brokers'"
        " transaction.max.timeout.ms if it is less"
    )


def _producing(name: str, target: KafkaSinkConfig) -> Settings:
    return {
        "transactional.id": name,
        "transaction.timeout.ms": target.spec.transaction_timeout_us // 1000,
        "message.timeout.ms": min(int(PATIENCE_S * 1000), target.spec.transaction_timeout_us // 1000),
        "message.max.bytes": target.max_bytes,
        "partitioner": "murmur2_random",  # that of Java's producers
        "linger.ms": 20,
        "retry.backoff.ms": 5,  # the first time, then longer: a transaction begins while brokers end the one before
        "queue.buffering.max.messages": _QUEUE,
        "queue.buffering.max.kbytes": _QUEUE_KB,
        "delivery.report.only.error": True,
    }
