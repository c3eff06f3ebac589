"""The results of one task (a partition) and batch, as one Kafka transaction. Law: each batch is in the topic once.

    first row   channel: cached or new ─► marker: is the batch there already? ─► begin, move the marker to batch + 1
    last row    flush ─► commit; only then are the manifests of its units written

A batch that runs again has the same rows, so what is there already need not be looked at, only skipped. Killed before
the commit, the transaction is aborted by whoever opens the channel next; killed after it, the marker says so.
"""

from collections import OrderedDict

import pyarrow as pa

from joinlib import fault
from joinlib.errors import StateError, StreamJoinError
from joinlib.spark.channel import Channel
from joinlib.spark.messages import messages
from joinlib.spark.task import KafkaTarget

_MOST = 8
_STALE_S = (
    3.0  # after a broker's restart a channel may wait in vain for its coordinator: a new one is quicker
)
# With their markers, of this process.
_kept: OrderedDict[tuple[str, str, int], tuple[Channel, int]] = OrderedDict()


class Outbox:
    """Begun with the first row, so that a task without rows costs nothing."""

    def __init__(self, target: KafkaTarget, partition: int, batch: int) -> None:
        self.target, self.partition, self.batch = target, partition, batch
        self._channel: Channel | None = None
        self._there = False  # the batch is in the topic already

    def send(self, rows: pa.RecordBatch) -> None:
        """Queues the rows."""
        if self._channel is None and not self._there:
            self._begin()
        if self._channel is not None:
            self._channel.produce(messages(rows, self.target))

    def commit(self) -> None:
        """Once all rows of the task are sent."""
        if self._channel is None:
            return
        self._channel.flush()
        fault.point("produced", self.batch)
        self._channel.commit()
        fault.point("sent", self.batch)
        self._keep(self._channel, self.batch + 1)

    def _begin(self) -> None:
        kept = _kept.pop(self._key, None)
        if kept is not None and self._begun(*kept):
            return
        channel = Channel(self.target, self.partition)
        marker = channel.open()
        if marker is None and self.batch == self.target.doubtful:
            raise _forgotten(self.target, self.batch)
        self._there = marker is not None and self._is_there(marker)
        if self._there:
            self._keep(channel, self.batch + 1)
        else:
            channel.begin(self.batch + 1)
            self._channel = channel

    def _begun(self, channel: Channel, marker: int) -> bool:
        """With a channel of an earlier task; false if another process has opened the same since, or its connection is lost."""
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

    def _keep(self, channel: Channel, marker: int) -> None:
        if channel.sound:
            _kept[self._key] = channel, marker
        if len(_kept) > _MOST:
            _kept.popitem(last=False)

    @property
    def _key(self) -> tuple[str, str, int]:
        return self.target.job, self.target.topic, self.partition


def _forgotten(target: KafkaTarget, batch: int) -> StateError:
    return StateError(
        f"batch {batch} was begun so long ago that Kafka has forgotten whether its results are in topic {target.topic}"
        " (offsets.retention.minutes): look there; if they are not, or may be there twice, set"
        " output.kafka.onForgotten: repeat for one run; else use a new checkpoint"
    )
