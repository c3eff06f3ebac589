"""A transactional producer of librdkafka, by the library's own functions: it takes messages in columns.

Messages are handed over many at once, and the library copies their bytes.
"""

import ctypes
import weakref

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from joinlib.broker import Settings, Trouble
from joinlib.librdkafka import DELIVERED, PRODUCER, check_answer, ended, error, library, made, offsets
from joinlib.sink.kafka.messages import Outgoing
from joinlib.spec.kafka import KafkaConnection

_ANY_PARTITION, _COPY = -1, 2  # constants of rdkafka.h
_CONNECTED_S = 1.0
_LOOKS = 50  # a millisecond each, whether messages are delivered: given more time, the library looks every 10
_NO_ROOM = KafkaError._QUEUE_FULL
# A message as the library takes it (rdkafka.h, rd_kafka_message_t), in words of eight bytes. Behind value and key: their sizes.
_WORDS, _ERROR, _VALUE, _KEY = 9, 0, 3, 5


class Reports:
    """What a client has reported: of itself, and of messages that were not delivered. It does not know the client."""

    def __init__(self, connection: KafkaConnection) -> None:
        self.trouble = Trouble(connection)
        self.shaken = False  # it has told of an error
        self.failed: KafkaError | None = None  # why the first undelivered message was not

    def heard(self, error: KafkaError) -> None:
        self.shaken = True
        self.trouble.heard(error)

    def undelivered(self, error: KafkaError) -> None:
        self.failed = self.failed or error


class ProducerClient:
    """Writes to one topic, in transactions. Freed with the last reference to it; who opens the same id next aborts what was
    not committed.

    Times are in seconds. What fails raises KafkaException.
    """

    def __init__(self, settings: Settings, topic: str, reports: Reports) -> None:
        """Make a client of a topic. `reports` takes what it reports while it is asked for something."""

        def delivered(client: int, message: "ctypes._Pointer[ctypes.c_int]", own: int) -> None:
            if code := message[0]:
                reports.undelivered(ended(client) or error(code))

        self._topic_name = topic
        self._client, kept = made(PRODUCER, settings, reports.heard, DELIVERED(delivered))
        self._topic = library().topic_new(self._client, topic.encode(), None)
        weakref.finalize(self, _freed, self._client, self._topic, kept).atexit = False

    def __len__(self) -> int:
        """How many messages are not delivered yet."""
        return int(library().outq_len(self._client))

    def produce(self, sent: Outgoing) -> int:
        """Take messages, in order, while there is room; return how many."""
        fields = np.zeros((len(sent), _WORDS), np.int64)
        for part, at in ((sent.values, _VALUE), (sent.keys, _KEY)):
            if part is not None:
                fields[:, at], fields[:, at + 1] = part.addresses, np.maximum(part.sizes, 0)
        taken = library().produce_batch(self._topic, _ANY_PARTITION, _COPY, fields.ctypes.data, len(fields))
        if taken < len(fields):
            codes = fields[:, _ERROR].astype(np.int32)
            for code in set(codes[codes != 0].tolist()) - {_NO_ROOM}:
                raise KafkaException(error(code))
        return int(taken)

    def poll(self, patience: float) -> None:
        """Hear what has become of messages, for at most so long."""
        library().poll(self._client, int(1000 * patience))

    def flush(self, patience: float) -> int:
        """Wait until all messages are delivered; return how many are not, if that takes longer."""
        for _ in range(_LOOKS):
            if not len(self):
                return 0
            library().flush(self._client, 1)
        library().flush(self._client, int(1000 * patience))
        return len(self)

    def init_transactions(self, patience: float) -> None:
        """Take over the id of this client, and abort what an earlier one of that id has left."""
        # The library asks for the coordinator at once, and then half a second later: a broker must be connected by now.
        self._connect(min(patience, _CONNECTED_S))
        check_answer(library().init_transactions(self._client, int(1000 * patience)))

    def _connect(self, patience: float) -> None:
        """Wait until a broker has answered, which may fail."""
        low, high = ctypes.c_int64(), ctypes.c_int64()
        name, limit = self._topic_name.encode(), int(1000 * patience)
        library().query_watermark_offsets(self._client, name, 0, low, high, limit)

    def begin_transaction(self) -> None:
        check_answer(library().begin_transaction(self._client))

    def send_offset(self, group: str, offset: int, patience: float) -> None:
        """Set a group's offset of the topic's partition 0, with the transaction. The group has no members."""
        of = library()
        member = of.consumer_group_metadata_new(group.encode())
        try:
            with offsets({(self._topic_name, 0): offset}) as places:
                limit = int(1000 * patience)
                check_answer(of.send_offsets_to_transaction(self._client, places, member, limit))
        finally:
            of.consumer_group_metadata_destroy(member)

    def commit_transaction(self, patience: float) -> None:
        check_answer(library().commit_transaction(self._client, int(1000 * patience)))

    def abort_transaction(self, patience: float) -> None:
        """Abort the transaction; its messages are told as failed."""
        check_answer(library().abort_transaction(self._client, int(1000 * patience)))


def _freed(client: int, topic: int, kept: object) -> None:
    library().topic_destroy(topic)
    library().destroy(client)
