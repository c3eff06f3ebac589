"""Writes the results of one task (a partition) and batch as one Kafka transaction.

    first row   producer: kept or new ─► marker: is the batch there already? ─► begin, move it to batch + 1
    some rows   messages ─► queue
    last row    flush ─► commit; only then are the manifests of the task's units written

The first step waits for the brokers, so it is done by a thread while the task goes on; and rows become messages some
thousand at a time, because a call for the few of a unit costs as much.

Law: each batch is in the topic once. A batch that runs again has the same rows, so it is skipped if it is
there already. If the task is killed before the commit, the transaction is aborted by the producer that is
opened next; if after it, the marker shows it.
"""

from concurrent.futures import Future

import pyarrow as pa

from joinlib import fault
from joinlib.errors import StateError, StreamJoinError
from joinlib.sink.config import KafkaSinkConfig
from joinlib.sink.kafka.messages import messages
from joinlib.sink.kafka.producer import TransactionalProducer, beside
from joinlib.worker import Keep, current

_ROWS, _BYTES = 4096, 1 << 20  # that wait at most until they are queued


class KafkaSink:
    """Sends rows in one transaction. It begins with the first row, so a task without rows costs nothing."""

    def __init__(self, target: KafkaSinkConfig, partition: int, batch: int) -> None:
        self.target, self.partition, self.batch = target, partition, batch
        self._channel: TransactionalProducer | None = None
        self._there = False  # the batch is in the topic already
        self._beginning: Future[None] | None = None  # since the first row
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0  # that wait

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows, and queue those that wait once there are enough."""
        if self._beginning is None:
            self._beginning = beside(self._begin)
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _ROWS or self._bytes >= _BYTES:
            self._queue(self._beginning)

    def next_unit(self) -> tuple[tuple[str, ...], bytes | None]:
        return (), None

    def close(self) -> None:
        """Commit the transaction, once all rows of the task are sent."""
        if self._beginning is not None:
            self._queue(self._beginning)
        if self._channel is None:
            return
        self._channel.flush()
        fault.point("produced", self.batch)
        self._channel.commit()
        fault.point("sent", self.batch)
        self._keep(self._channel, self.batch + 1)

    def _queue(self, begun: Future[None]) -> None:
        """Queue the rows that wait."""
        begun.result()
        if self._channel is not None and self._waiting:
            for sent in messages(pa.concat_batches(self._waiting), self.target):
                self._channel.produce(sent)
        self._waiting, self._rows, self._bytes = [], 0, 0

    def _begin(self) -> None:
        kept = _idle().take(self._key)
        if kept is not None and self._begun(*kept):
            return
        channel = TransactionalProducer(self.target, self.partition)
        marker = channel.open()
        if marker is None and self.batch == self.target.doubtful:
            raise _forgotten(self.target, self.batch)
        self._there = marker is not None and self._is_there(marker)
        if self._there:
            self._keep(channel, self.batch + 1)
        else:
            channel.begin(self.batch + 1)
            self._channel = channel

    def _begun(self, channel: TransactionalProducer, marker: int) -> bool:
        """Begin with the producer of an earlier task.

        Returns False if another process has opened the same since, or its connection is lost.
        """
        if marker == self.batch + 1 or not channel.sound:
            return False
        try:
            channel.begin(self.batch + 1)
        except StreamJoinError:
            return False
        self._channel = channel
        return True

    def _is_there(self, marker: int) -> bool:
        if marker > self.batch + 1:
            raise StateError(
                f"output topic {self.target.topic} holds batch {marker - 1} of this checkpoint, which is at batch {self.batch}:"
                " it is an old copy; use the newest one, or a new checkpoint and a new topic"
            )
        return marker == self.batch + 1

    def _keep(self, channel: TransactionalProducer, marker: int) -> None:
        if channel.sound:
            _idle().put(self._key, (channel, marker))

    @property
    def _key(self) -> tuple[str, str, int]:
        return self.target.job, self.target.topic, self.partition


def _idle() -> Keep[tuple[str, str, int], tuple[TransactionalProducer, int]]:
    """The producers of this process that no task uses, each with its marker."""
    return current().producers


def _forgotten(target: KafkaSinkConfig, batch: int) -> StateError:
    return StateError(
        f"batch {batch} was begun so long ago that Kafka has forgotten whether its results are in topic {target.topic}"
        " (offsets.retention.minutes): look there; if they are not, or may be there twice, set"
        " output.kafka.onForgotten: repeat for one run; else use a new checkpoint"
    )
