"""Functions of librdkafka, which confluent-kafka brings, by which messages come and go in columns.

The package itself makes an object for each message, and one more for each question about it, which takes longer than to
read the message. Clients that are made here (`source.kafka.client`, `sink.kafka.client`) know nothing of the package's.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from confluent_kafka import KafkaError, KafkaException, cimpl

from joinlib.broker import Settings

PRODUCER, CONSUMER = 0, 1  # constants of rdkafka.h, as are those below
_SET = 0
_TEXT_BYTES = 512
_WORD, _INT, _BYTES = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_LONG = ctypes.c_int64
_HEARD = ctypes.CFUNCTYPE(None, _WORD, _INT, _BYTES, _WORD)
DELIVERED = ctypes.CFUNCTYPE(None, _WORD, ctypes.POINTER(_INT), _WORD)  # the message begins with its error
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "conf_new": (_WORD, []),
    "conf_set": (_INT, [_WORD, _BYTES, _BYTES, _BYTES, ctypes.c_size_t]),
    "conf_set_error_cb": (None, [_WORD, _HEARD]),
    "conf_set_dr_msg_cb": (None, [_WORD, DELIVERED]),
    "conf_set_log_cb": (None, [_WORD, _WORD]),
    "conf_destroy": (None, [_WORD]),
    "new": (_WORD, [_INT, _WORD, _BYTES, ctypes.c_size_t]),
    "destroy": (None, [_WORD]),
    "destroy_flags": (None, [_WORD, _INT]),
    "last_error": (_INT, []),
    "err2str": (_BYTES, [_INT]),
    "fatal_error": (_INT, [_WORD, _BYTES, ctypes.c_size_t]),
    "error_code": (_INT, [_WORD]),
    "error_string": (_BYTES, [_WORD]),
    "error_is_fatal": (_INT, [_WORD]),
    "error_is_retriable": (_INT, [_WORD]),
    "error_txn_requires_abort": (_INT, [_WORD]),
    "error_destroy": (None, [_WORD]),
    "topic_partition_list_new": (_WORD, [_INT]),
    "topic_partition_list_add": (_WORD, [_WORD, _BYTES, ctypes.c_int32]),
    "topic_partition_list_set_offset": (_INT, [_WORD, _BYTES, ctypes.c_int32, _LONG]),
    "topic_partition_list_destroy": (None, [_WORD]),
    # of consumers
    "poll_set_consumer": (_INT, [_WORD]),
    "queue_get_consumer": (_WORD, [_WORD]),
    "queue_destroy": (None, [_WORD]),
    "assign": (_INT, [_WORD, _WORD]),
    "consume_batch_queue": (ctypes.c_ssize_t, [_WORD, _INT, _WORD, ctypes.c_size_t]),
    "query_watermark_offsets": (
        _INT,
        [_WORD, _BYTES, ctypes.c_int32, ctypes.POINTER(_LONG), ctypes.POINTER(_LONG), _INT],
    ),
    "topic_name": (_BYTES, [_WORD]),
    "message_timestamp": (_LONG, [_WORD, _WORD]),
    "message_headers": (_INT, [_WORD, _WORD]),
    "header_cnt": (ctypes.c_size_t, [_WORD]),
    "header_get_all": (_INT, [_WORD, ctypes.c_size_t, _WORD, _WORD, _WORD]),
    "message_destroy": (None, [_WORD]),
    # of producers
    "topic_new": (_WORD, [_WORD, _BYTES, _WORD]),
    "topic_destroy": (None, [_WORD]),
    "produce_batch": (_INT, [_WORD, ctypes.c_int32, _INT, _WORD, _INT]),
    "poll": (_INT, [_WORD, _INT]),
    "flush": (_INT, [_WORD, _INT]),
    "outq_len": (_INT, [_WORD]),
    "init_transactions": (_WORD, [_WORD, _INT]),
    "begin_transaction": (_WORD, [_WORD]),
    "consumer_group_metadata_new": (_WORD, [_BYTES]),
    "consumer_group_metadata_destroy": (None, [_WORD]),
    "send_offsets_to_transaction": (_WORD, [_WORD, _WORD, _WORD, _INT]),
    "commit_transaction": (_WORD, [_WORD, _INT]),
    "abort_transaction": (_WORD, [_WORD, _INT]),
}


def made(
    kind: int, settings: Settings, heard: Callable[[KafkaError], None], delivered: Any = None
) -> tuple[int, Any]:
    """Return a client, and what must be kept as long as it lives.

    Args:
        kind: PRODUCER or CONSUMER.
        settings: The client's, by the library's names.
        heard: Is told its errors, while it is asked for something.
        delivered: DELIVERED, told what has become of messages; None for a consumer.

    Raises:
        KafkaException: The settings are none.
    """

    def tell(client: int, code: int, why: bytes | None, own: int) -> None:
        heard(ended(client) or _error(code, why))

    of, text = library(), ctypes.create_string_buffer(_TEXT_BYTES)
    conf, kept = of.conf_new(), (_HEARD(tell), delivered)
    for name, value in settings.items():
        said = str(value).lower() if isinstance(value, bool) else str(value)
        if of.conf_set(conf, name.encode(), said.encode(), text, _TEXT_BYTES) != _SET:
            of.conf_destroy(conf)
            raise KafkaException(_error(KafkaError._INVALID_ARG, text.value))
    of.conf_set_error_cb(conf, kept[0])
    of.conf_set_log_cb(conf, None)  # failures are raised; lesser problems resolve themselves
    if delivered is not None:
        of.conf_set_dr_msg_cb(conf, delivered)
    if client := of.new(kind, conf, text, _TEXT_BYTES):
        return int(client), kept
    code = of.last_error()
    of.conf_destroy(conf)
    raise KafkaException(_error(code, text.value))


def ended(client: int) -> KafkaError | None:
    """Return what has made a client unusable, such as another one of its transactional id; None if nothing has.

    Other errors follow from it, which say less.
    """
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    code = library().fatal_error(client, text, _TEXT_BYTES)
    return _error(code, text.value, True) if code else None


def check(code: int) -> None:
    """Raise KafkaException if there is an error."""
    if code:
        raise KafkaException(error(code))


def check_answer(answer: int | None) -> None:
    """Raise KafkaException if a function has returned an error, with what it says should be done about it."""
    if answer is None:
        return
    of = library()
    code, why = of.error_code(answer), of.error_string(answer)
    asked = (of.error_is_fatal, of.error_is_retriable, of.error_txn_requires_abort)
    flags = [bool(ask(answer)) for ask in asked]
    of.error_destroy(answer)
    raise KafkaException(_error(code, why, *flags))


def error(code: int) -> KafkaError:
    """Return an error of which only its number is known."""
    return _error(code, library().err2str(code))


def _error(code: int, why: bytes | None, *flags: bool) -> KafkaError:
    return KafkaError(code, (why or b"").decode(errors="replace"), *flags)


@contextmanager
def offsets(each: Mapping[tuple[str, int], int]) -> Iterator[int]:
    """Give partitions, each with an offset, as functions take them. Keys: topic and partition."""
    of = library()
    made = of.topic_partition_list_new(len(each))
    try:
        for (topic, partition), offset in each.items():
            of.topic_partition_list_add(made, topic.encode(), partition)
            of.topic_partition_list_set_offset(made, topic.encode(), partition, offset)
        yield made
    finally:
        of.topic_partition_list_destroy(made)


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
def library() -> _Library:
    """Return the library."""
    return _Library()


@cache
def address(name: str) -> int:
    """Return where a function is, for kernels that call it."""
    return int(ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0)
