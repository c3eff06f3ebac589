"""Reads messages in Protobuf by tables of their fields (numba, cached on disk).

    entries     a row for each field that counts, by its number within its type: what it is, and where it goes
    nodes       for each type of message at its place: its entries, what a new one of it begins with, and whether it
                is a pair of a map, in which nobody writes what is unknown, and of which runtimes differ then
    begins      what a new message begins with: values that are zero or not there, lists without items
    cells       8 bytes for each value: numbers as they are, the bits of floats; of bytes and text their length,
                and in the slot behind it where they begin, since they are not copied here
    levels      rows are counted by level: those of level 0 are the messages, each list has a level of its own

A message that says a thing twice, where that is more than the last one counting (a message within it in two
pieces, two members of a oneof), ends with AGAIN: it is to be written anew, so that it says each once.

Law: nothing outside of a message is read; a message is read to its end, or it is malformed. Cost: O(bytes + slots).
"""

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I64

F64 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint8]
(
    INT32, UINT32, INT64, SINT32, SINT64, BOOL, FIXED32, SFIXED32, FIXED64, FLOAT, DOUBLE, BYTES, TEXT, MESSAGE, SKIP,
) = range(15)  # fmt: skip
NUMBER, OP, WIRE, SLOT, LEVEL, ITEMS, NODE, ONEOF, OWN = range(9)  # the columns of an entry
FINE, MALFORMED, FULL, AGAIN = range(4)  # how it may end
DEPTH = 64  # messages within messages, and groups within groups
_TAG = 0xFFFFFFFF  # the greatest
_VARINT, _EIGHT, _SIZED, _GROUP, _END, _FOUR = range(6)  # what stands behind a tag


@nb.njit(cache=True, nogil=True)
def _varint(raw: U8, at: int, end: int) -> tuple[int, int]:
    """Return a number of 64 bits and where it ends, or -1 if it is none."""
    if at < end and raw[at] < 128:  # nearly all are this short
        return int(raw[at]), at + 1
    value, shift = 0, 0
    while at < end and shift < 70:
        byte = int(raw[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if shift == 63 and byte > 1:
                return 0, -1
            return value, at
        shift += 7
    return 0, -1


@nb.njit(cache=True, nogil=True)
def _little(raw: U8, at: int, size: int) -> int:
    """Return a number whose least significant byte comes first."""
    value = 0
    for i in range(size):
        value |= int(raw[at + i]) << (8 * i)
    return value


@nb.njit(cache=True, nogil=True)
def _is_text(raw: U8, at: int, end: int) -> bool:
    """Return whether bytes are UTF-8."""
    high = np.uint8(0)
    for i in range(at, end):
        high |= raw[i]
    while high > 127 and at < end:
        first = int(raw[at])
        more = 0 if first < 0x80 else 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if 0x80 <= first < 0xC2 or first > 0xF4 or at + more >= end:
            return False
        for i in range(1, more + 1):
            if raw[at + i] & 0xC0 != 0x80:
                return False
        second = int(raw[at + 1]) if more else 0
        if (
            (first == 0xE0 and second < 0xA0)  # shorter was possible
            or (first == 0xED and second > 0x9F)  # half of a pair of UTF-16
            or (first == 0xF0 and second < 0x90)
            or (first == 0xF4 and second > 0x8F)  # beyond Unicode
        ):
            return False
        at += more + 1
    return True


@nb.njit(cache=True, nogil=True)
def _sized(raw: U8, at: int, end: int) -> tuple[int, int]:
    """Return how long something is, and where it begins, or -1."""
    size, at = _varint(raw, at, end)
    return (size, at) if at >= 0 and 0 <= size <= end - at else (0, -1)


@nb.njit(cache=True, nogil=True)
def _passed(raw: U8, at: int, end: int, wire: int) -> int:
    """Return where a value ends that is no group, or -1."""
    if wire == _VARINT:
        return _varint(raw, at, end)[1]
    if wire == _SIZED:
        size, at = _sized(raw, at, end)
        return at + size
    if wire != _EIGHT and wire != _FOUR:
        return -1
    size = 8 if wire == _EIGHT else 4
    return -1 if size > end - at else at + size


@nb.njit(cache=True, nogil=True)
def _skipped(raw: U8, at: int, end: int, number: int, wire: int) -> int:
    """Return where a field ends that nobody wants, behind its tag; or -1."""
    if wire != _GROUP:
        return _passed(raw, at, end, wire)
    open = np.empty(DEPTH, np.int64)
    open[0], depth = number, 1
    while depth:
        tag, at = _varint(raw, at, end)
        if at < 0 or not 8 <= tag <= _TAG:
            return -1
        if tag & 7 == _GROUP:
            if depth == DEPTH:
                return -1
            open[depth] = tag >> 3
            depth += 1
        elif tag & 7 == _END:
            depth -= 1
            if open[depth] != tag >> 3:
                return -1
        else:
            at = _passed(raw, at, end, tag & 7)
            if at < 0:
                return -1
    return at


@nb.njit(cache=True, nogil=True)
def _short(value: int) -> int:
    """Return the lower 32 bits as a number with its sign."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@nb.njit(cache=True, nogil=True)
def _numeral(op: int, raw: U8, at: int, end: int, place: int, cells: I64) -> int:
    """Read a number of any length into a cell; return where it ends, or -1."""
    value, at = _varint(raw, at, end)
    if op == SINT32:
        value &= 0xFFFFFFFF
    if op == INT32:
        value = _short(value)
    elif op == UINT32:
        value &= 0xFFFFFFFF
    elif op in (SINT32, SINT64):
        value = ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)
    elif op == BOOL:
        value = 1 if value != 0 else 0
    cells[place] = value
    return at


@nb.njit(cache=True, nogil=True)
def _value(op: int, raw: U8, at: int, end: int, place: int, cells: I64, reals: F64) -> int:
    """Read a number into a cell; return where it ends, or -1."""
    if op <= BOOL:
        return _numeral(op, raw, at, end, place, cells)
    size = 8 if op in (FIXED64, DOUBLE) else 4
    if size > end - at:
        return -1
    value = _little(raw, at, size)
    if op == FLOAT:
        reals[place] = np.int32(value).view(np.float32)
    else:
        cells[place] = _short(value) if op == SFIXED32 else value
    return at + size


@nb.njit(cache=True, nogil=True)
def _single(op: int, raw: U8, at: int, end: int, place: int, behind: int, cells: I64, reals: F64) -> int:
    """Read a number into a cell, or note there how long bytes are and behind it where they begin; return their end."""
    if op < BYTES:
        return _value(op, raw, at, end, place, cells, reals)
    size, at = _sized(raw, at, end)
    if at < 0 or (op == TEXT and not _is_text(raw, at, at + size)):
        return -1
    cells[place], cells[behind] = size, at
    return at + size


@nb.njit(cache=True, nogil=True)
def _packed(
    op: int, raw: U8, at: int, end: int, slot: int, level: int,
    base: I64, room: I64, cells: I64, reals: F64, rows: I64,
) -> int:  # fmt: skip
    """Read numbers that stand one after the other; return where they end, -1, or -2 if there is no room."""
    size, at = _sized(raw, at, end)
    end = at + size
    while 0 <= at < end:
        if rows[level] >= room[level]:
            return -2
        at = _value(op, raw, at, end, base[slot] + rows[level], cells, reals)
        rows[level] += 1
    return at


@nb.njit(cache=True, nogil=True)
def _is_second(entry: int, entries: I64, base: I64, rows: I64, cells: I64) -> bool:
    """Return whether another member of the field's oneof came before it, and note that this one came."""
    oneof, number = entries[entry, ONEOF], entries[entry, NUMBER]
    if oneof < 0:
        return False
    place = base[oneof] + rows[entries[entry, OWN]]
    before, cells[place] = cells[place], number
    return before != 0 and before != number


@nb.njit(cache=True, nogil=True)
def _begin(node: int, nodes: I64, begins: I64, base: I64, cells: I64, valid: U8, rows: I64) -> None:
    """Let a new message be as if nothing of it had come."""
    for i in range(nodes[node, 2], nodes[node, 3]):
        place, items = base[begins[i, 0]] + rows[begins[i, 1]], begins[i, 2]
        cells[place] = rows[items] if items >= 0 else 0
        valid[place] = begins[i, 3]


@nb.njit(cache=True, nogil=True)
def _found(entries: I64, near: int, first: int, last: int, number: int) -> int:
    """Return the entry of a field, or -1; it is looked for first behind the one that came before."""
    for guess in range(near, min(near + 2, last)):
        if entries[guess, NUMBER] == number:
            return guess
    behind = last
    while first < last:
        middle = (first + last) >> 1
        if entries[middle, NUMBER] < number:
            first = middle + 1
        else:
            last = middle
    return first if first < behind and entries[first, NUMBER] == number else -1


@nb.njit(cache=True, nogil=True)
def _read(  # noqa: C901  a branch for each sort of field
    raw: U8, at: int, end: int, entries: I64, nodes: I64, begins: I64, base: I64, room: I64,
    cells: I64, reals: F64, valid: U8, rows: I64, open: I64,
) -> tuple[int, int]:  # fmt: skip
    """Read one message. Return how it ended, and which level is full.

    `open`: of each message that this is in, where it ends, its node, and the level whose row it is, or -1.
    """
    depth, node = 0, 0
    near = nodes[0, 0]
    _begin(0, nodes, begins, base, cells, valid, rows)
    while True:
        if at == end:
            if depth == 0:
                return FINE, 0
            depth -= 1
            if open[depth, 2] >= 0:
                rows[open[depth, 2]] += 1
            end, node = open[depth, 0], open[depth, 1]
            near = nodes[node, 0]
            continue
        tag, at = _varint(raw, at, end)
        if at < 0 or not 8 <= tag <= _TAG:
            return MALFORMED, 0
        number, wire = tag >> 3, tag & 7
        which = _found(entries, near, nodes[node, 0], nodes[node, 1], number)
        entry = max(which, 0)
        op, items = entries[entry, OP], entries[entry, ITEMS]
        packed = wire == _SIZED and items != 0 and op < BYTES
        known = which >= 0 and (packed or wire == entries[entry, WIRE])
        if known and _is_second(entry, entries, base, rows, cells):
            return AGAIN, 0
        if not known or op == SKIP:
            at = _skipped(raw, at, end, number, wire)
            if at < 0 or (nodes[node, 4] and not known):
                return MALFORMED, 0
            continue
        near, slot, level = which, entries[entry, SLOT], entries[entry, LEVEL]
        if packed:
            at = _packed(op, raw, at, end, slot, level, base, room, cells, reals, rows)
            if at < 0:
                return (FULL if at == -2 else MALFORMED), level
            continue
        if items and rows[level] >= room[level]:
            return FULL, level
        place = base[slot] + rows[level]
        if op == MESSAGE:
            size, at = _sized(raw, at, end)
            if at < 0 or (not items and cells[place] != 0):
                return (MALFORMED if at < 0 else AGAIN), 0
            if not items:
                cells[place], valid[place] = 1, 1
            open[depth, 0], open[depth, 1], open[depth, 2] = end, node, level if items else -1
            depth += 1
            end, node = at + size, entries[entry, NODE]
            near = nodes[node, 0]
            _begin(node, nodes, begins, base, cells, valid, rows)
            continue
        at = _single(op, raw, at, end, place, base[slot + 1] + rows[level], cells, reals)
        if at < 0:
            return MALFORMED, 0
        valid[place] = 1
        rows[level] += 1 if items else 0


@nb.njit(cache=True, nogil=True)
def read(
    raw: U8, starts: I64, ends: I64, entries: I64, nodes: I64, begins: I64, base: I64, room: I64,
    cells: I64, reals: F64, valid: U8, rows: I64,
) -> tuple[int, int, int]:  # fmt: skip
    """Read messages; return how it ended, at which of them, and which level was full.

    Args:
        raw: All messages.
        starts: Where each message begins.
        ends: Where each ends.
        entries: Fields, by type and number.
        nodes: Types of messages; the first is that of each message.
        begins: What a new message begins with.
        base: Where the values of each slot begin in `cells`.
        room: How many rows each level has room for.
        cells: Filled.
        reals: The same memory, seen as floats.
        valid: Which values are there; 1 at first.
        rows: Filled with the number of rows of each level; 0 at first.
    """
    open = np.zeros((2 * DEPTH + 2, 3), np.int64)  # what maps hold lies in two
    for message in range(starts.shape[0]):
        if starts[message] > ends[message]:
            return MALFORMED, message, 0
        rows[0] = message
        word, level = _read(
            raw,
            starts[message],
            ends[message],
            entries,
            nodes,
            begins,
            base,
            room,
            cells,
            reals,
            valid,
            rows,
            open,
        )
        if word != FINE:
            return word, message, level
    rows[0] = starts.shape[0]
    return FINE, 0, 0
