"""Reads what librdkafka hands out, many messages at once (numba, cached on disk).

A message is a structure whose form is part of the library's interface (rdkafka.h, rd_kafka_message_t):

    bytes   0   4   8       16          24       32     40   48        56
            err     topic   partition   value    size   key  its size  offset

What else there is to it, its time and its headers, the library's functions tell.
"""

import numba as nb

from joinlib.arrays import I64
from joinlib.source.memory import byte, call1, call2, call5, half, word

ERROR, TOPIC, PARTITION, VALUE, SIZE, KEY, KEY_SIZE, OFFSET, TIME = range(9)
FIELDS = 9


@nb.njit(cache=True, nogil=True)
def opened(messages: I64, time: int, room: I64, fields: I64) -> None:
    """Say what messages hold, a row of `fields` each. `time`: rd_kafka_message_timestamp; `room`: one word."""
    for i in range(messages.shape[0]):
        at = messages[i]
        fields[i, ERROR] = half(at)
        fields[i, TOPIC] = word(at + 8)
        fields[i, PARTITION] = half(at + 16)
        fields[i, VALUE] = word(at + 24)
        fields[i, SIZE] = word(at + 32) if fields[i, VALUE] else -1
        fields[i, KEY] = word(at + 40)
        fields[i, KEY_SIZE] = word(at + 48) if fields[i, KEY] else -1
        fields[i, OFFSET] = word(at + 56)
        room[0] = 0  # what kind of time it is: none
        fields[i, TIME] = call2(time, (at, room.ctypes.data))
        if room[0] == 0:
            fields[i, TIME] = -1


@nb.njit(cache=True, nogil=True)
def counted(messages: I64, headers: int, count: int, room: I64, lists: I64, counts: I64) -> None:
    """Say how many headers messages have, and where.

    `headers`, `count`: rd_kafka_message_headers and rd_kafka_header_cnt; `room`: one word.
    """
    for i in range(messages.shape[0]):
        failed = call2(headers, (messages[i], room.ctypes.data)) & 0xFFFFFFFF
        lists[i] = 0 if failed else room[0]
        counts[i] = 0 if failed else call1(count, (lists[i],))


@nb.njit(cache=True, nogil=True)
def listed(lists: I64, counts: I64, get: int, room: I64, found: I64) -> None:
    """Say where names and values of headers are, and their sizes, a row of `found` each.

    `get`: rd_kafka_header_get_all; `room`: three words.
    """
    to, row = room.ctypes.data, 0
    for i in range(lists.shape[0]):
        for n in range(counts[i]):
            call5(get, (lists[i], n, to, to + 8, to + 16))
            size = 0
            while byte(room[0] + size):
                size += 1
            found[row, 0], found[row, 1] = room[0], size
            found[row, 2], found[row, 3] = room[1], room[2] if room[1] else -1
            row += 1


@nb.njit(cache=True, nogil=True)
def released(messages: I64, destroy: int) -> None:
    """Give messages back. `destroy`: rd_kafka_message_destroy."""
    for i in range(messages.shape[0]):
        call1(destroy, (messages[i],))
