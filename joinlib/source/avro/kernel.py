"""Reads messages in Avro by a program (numba, cached on disk).

    program     a row of four numbers for each step: what it does (below), and where what it reads goes
    cells       8 bytes for each value: numbers as they are, the bits of floats; of bytes and text their length,
                and in the slot behind it where they begin, since they are not copied here
    levels      rows are counted by level: those of level 0 are the messages, each array has a level of its own
    constants   stand in front of the messages: symbols of enums, and defaults, encoded as in a message

Law: nothing outside of a message is read, nor outside of the constants; a message is read to its end, or it is
malformed. Cost: O(bytes + steps).
"""

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I64

F64 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint8]
STEP = 5  # numbers of a step: the operation, and at most four of its own
(
    INT, LONG, REAL, BYTES, FIXED, ENUM, BOOL, FLOAT, DOUBLE, NULL, NO_LIST,
    SKIP_NUMBER, SKIP_BYTES, SKIP_FIXED, UNION, GO, LIST, NEXT, ITEM, DEFAULT, BACK, END, REFUSE,
) = range(23)  # fmt: skip
FINE, MALFORMED, REFUSED, FULL = range(4)  # how it may end
DEPTH = 64  # arrays within arrays


@nb.njit(cache=True, nogil=True)
def _number(raw: U8, at: int, end: int) -> tuple[int, int]:
    """Return a number and where it ends, or -1 if it is none."""
    value, shift = 0, 0
    while at < end and shift < 70:
        byte = int(raw[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if shift == 63 and byte > 1:
                return 0, -1
            return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
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
def _block(raw: U8, at: int, end: int, most: int, skipped: bool) -> tuple[int, int]:
    """Return how many items come next and where, or -1: 0 if none, or if they are skipped as a whole.

    More than `most` are refused.
    """
    while True:
        count, at = _number(raw, at, end)
        if at < 0 or count == 0:
            return 0, at
        size = -1
        if count < 0:
            size, at = _number(raw, at, end)
            if at < 0 or size < 0 or size > end - at or count == -0x8000000000000000:
                return 0, -1
            count = -count
        if count > most:
            return 0, -1
        if size < 0 or not skipped:
            return count, at
        at += size


@nb.njit(cache=True, nogil=True)
def _numeral(op: int, raw: U8, at: int, end: int, place: int, cells: I64, reals: F64) -> int:
    """Read an integer into a cell; return where it ends, or -1."""
    value, at = _number(raw, at, end)
    if op == INT and not -0x80000000 <= value <= 0x7FFFFFFF:
        return -1
    if op == REAL:
        reals[place] = value
    else:
        cells[place] = value
    return at


@nb.njit(cache=True, nogil=True)
def _fixed(op: int, raw: U8, at: int, end: int, place: int, cells: I64, reals: F64) -> int:
    """Read a value of a fixed number of bytes into a cell; return where it ends, or -1."""
    size = 1 if op == BOOL else 4 if op == FLOAT else 8
    if size > end - at:
        return -1
    if op == FLOAT:
        reals[place] = np.int32(_little(raw, at, 4)).view(np.float32)
    else:
        cells[place] = _little(raw, at, size)
        if op == BOOL and raw[at] > 1:
            return -1
    return at + size


@nb.njit(cache=True, nogil=True)
def _stretch(op: int, raw: U8, at: int, end: int, size: int, place: int, cells: I64) -> int:
    """Note the length of bytes, or of a text, in a cell; return where they begin, or -1."""
    if op == BYTES:
        size, at = _number(raw, at, end)
    if at < 0 or size < 0 or size > end - at:
        return -1
    cells[place] = size
    return at


@nb.njit(cache=True, nogil=True)
def _symbol(
    raw: U8, at: int, end: int, table: I64, first: int, count: int, place: int, begin: int, cells: I64
) -> int:
    """Note where the symbol of an enum lies; return where its number ends, or -1."""
    symbol, at = _number(raw, at, end)
    if at < 0 or symbol < 0 or symbol >= count:
        return -1
    cells[begin], cells[place] = table[first + 2 * symbol], table[first + 2 * symbol + 1]
    return at


@nb.njit(cache=True, nogil=True)
def _skipped(op: int, raw: U8, at: int, end: int, size: int) -> int:
    """Return where a value ends that nobody wants, or -1."""
    if op != SKIP_FIXED:
        number, at = _number(raw, at, end)
        if op == SKIP_NUMBER:
            return at
        size = number
    return -1 if at < 0 or size < 0 or size > end - at else at + size


@nb.njit(cache=True, nogil=True)
def _read(  # noqa: C901  a branch for each sort of step
    raw: U8, at: int, end: int, program: I64, table: I64, base: I64, room: I64,
    cells: I64, reals: F64, valid: U8, rows: I64, left: I64,
) -> tuple[int, int]:  # fmt: skip
    """Read one message. Return how it ended, and which level is full.

    `left`: how many items of the current block are still to come, of each array that this is in.
    `most`: how many more items there may be. A message has no more of them than bytes, over all its blocks,
    since those without a byte could be any number.
    """
    pc, depth, most = 0, -1, end - at
    back = back_end = back_most = 0
    while at >= 0:
        op, a, b, c = program[pc], program[pc + 1], program[pc + 2], program[pc + 3]
        pc += STEP
        place = base[a] + rows[b] if op <= NO_LIST else 0
        if op <= REAL:
            at = _numeral(op, raw, at, end, place, cells, reals)
        elif op <= FIXED:
            at = _stretch(op, raw, at, end, c, place, cells)
            cells[base[a + 1] + rows[b]] = at
            at += cells[place] if at >= 0 else 0
        elif op == ENUM:
            at = _symbol(raw, at, end, table, program[pc - 1], c, place, base[a + 1] + rows[b], cells)
        elif op <= DOUBLE:
            at = _fixed(op, raw, at, end, place, cells, reals)
        elif op <= NO_LIST:
            valid[place] = 0
            cells[place] = rows[c] if op == NO_LIST else 0
        elif op <= SKIP_FIXED:
            at = _skipped(op, raw, at, end, a)
        elif op == UNION:
            branch, at = _number(raw, at, end)
            if not 0 <= branch < a:
                return MALFORMED, 0
            pc = table[b + branch]
        elif op == GO:
            pc = a
        elif op == LIST:
            depth += 1
            left[depth] = 0
            if a >= 0:
                cells[base[a] + rows[b]] = rows[c]
        elif op == NEXT:
            if left[depth] == 0:
                left[depth], at = _block(raw, at, end, most, a < 0)
                most -= left[depth]
            if a >= 0 and left[depth] and rows[a] >= room[a]:
                return FULL, a
            left[depth] -= 1
            if left[depth] < 0:
                depth -= 1
                pc = b
        elif op == ITEM:
            rows[a] += 1
            pc = b
        elif op == DEFAULT:
            back, back_end, back_most, at, end, most = at, end, most, int(a), int(b), int(b) - int(a)
        elif op == BACK:
            at, end, most = back, back_end, back_most
        else:
            return (REFUSED if op == REFUSE else FINE if at == end else MALFORMED), 0
    return MALFORMED, 0


@nb.njit(cache=True, nogil=True)
def read(
    raw: U8, starts: I64, ends: I64, program: I64, table: I64, base: I64, room: I64,
    cells: I64, reals: F64, valid: U8, rows: I64,
) -> tuple[int, int, int]:  # fmt: skip
    """Read messages; return how it ended, at which of them, and which level was full.

    Args:
        raw: The constants, and all messages.
        starts: Where each message begins.
        ends: Where each ends.
        program: What is done with each.
        table: Where unions branch to; where symbols of enums begin and how long they are.
        base: Where the values of each slot begin in `cells`.
        room: How many rows each level has room for.
        cells: Filled.
        reals: The same memory, seen as floats.
        valid: Which values are there; 1 at first.
        rows: Filled with the number of rows of each level; 0 at first.
    """
    left = np.zeros(DEPTH, np.int64)
    for message in range(starts.shape[0]):
        rows[0] = message
        word, level = _read(
            raw, starts[message], ends[message], program, table, base, room, cells, reals, valid, rows, left
        )
        if word != FINE:
            return word, message, level
    rows[0] = starts.shape[0]
    return FINE, 0, 0
