"""Walks the messages of pgoutput (protocol 1) in compiled loops (numba, cached on disk).

    begin  B  commit's position (8), time (8), transaction (4)      insert  I  relation (4) N tuple
    commit C  flags (1), position (8), end (8), time (8)            update  U  relation (4) [K|O tuple] N tuple
    relation R, truncate T: rare, read in Python                    delete  D  relation (4) K|O tuple

    tuple: number of columns (2), and for each a kind: n (NULL), u (unchanged, not sent), t length (4) text

A value is not copied: it is where it begins in the messages and how long it is, NULL and UNCHANGED being
lengths below zero. Law: nothing outside of a message is read, and no value ends behind its message. Cost: O(bytes
of tuples).
"""

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I32, I64

U8 = npt.NDArray[np.uint8]
NULL, ABSENT = -1, -2  # lengths of values that are NULL, and that were not sent
BEGIN, COMMIT, INSERT, UPDATE, DELETE, TRUNCATE, RELATION = (ord(c) for c in "BCIUDTR")
_NEW, _KEY, _OLD = (ord(c) for c in "NKO")
_N, _U, _T = (ord(c) for c in "nut")
_BEGIN, _COMMIT, _CHANGE = 21, 26, 6  # bytes of a message, or at least so many
FINE, NOT_FULL, UNKNOWN, MALFORMED = range(4)  # what `tuples` may say


@nb.njit(cache=True, nogil=True, inline="always")
def _number(raw: U8, at: int, size: int) -> int:
    """Return an unsigned number, most significant byte first."""
    found = 0
    for i in range(size):
        found = (found << 8) | int(raw[at + i])
    return found


@nb.njit(cache=True, nogil=True)
def _visible(xid: int, xmin: int, xmax: int, running: I64) -> bool:
    """Return whether a snapshot holds what a transaction did, if it was committed.

    A message has the low 32 bits of a transaction's number, a snapshot all 64.
    """
    apart = (xid - xmax) & 0xFFFFFFFF
    if apart < 0x80000000:
        return False
    whole = xmax + apart - 0x100000000
    if whole < xmin:
        return True
    for other in running:  # noqa: SIM110 - compiled
        if other == whole:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def walk(
    raw: U8, starts: I32, read: int, until: int, snapshot: I64, keep: bool, end: int, ops: U8, relations: I64
) -> tuple[bool, int]:
    """Fill `ops` with the kinds of messages that count (else 0) and `relations` with the tables they are about.

    Return whether the transaction at the end counts, and where the last one that was committed ends; -1 if a message
    is cut off.

    Args:
        raw: The messages, one after the other.
        starts: Where each begins, and the end.
        read: Transactions that were committed before this position were read.
        until: Those before this position are left out if the snapshot holds them.
        snapshot: The snapshot: xmin, xmax, and the transactions between them that were running.
        keep: Whether the transaction counts that the first messages belong to.
        end: Where the last transaction ended.
        ops: Filled.
        relations: Filled.
    """
    for m in range(starts.shape[0] - 1):
        at, size = starts[m], starts[m + 1] - starts[m]
        kind = raw[at] if size > 0 else 0
        ops[m] = 0
        if size < _CHANGE or (kind == BEGIN and size < _BEGIN) or (kind == COMMIT and size < _COMMIT):
            return False, -1
        if kind == BEGIN:
            commit = _number(raw, at + 1, 8)
            held = commit < until and _visible(
                _number(raw, at + 17, 4), snapshot[0], snapshot[1], snapshot[2:]
            )
            keep = commit >= read and not held
        elif kind == COMMIT:
            end = _number(raw, at + 10, 8)
        elif kind == RELATION or (keep and kind == TRUNCATE):
            ops[m] = kind
        elif keep and kind in (INSERT, UPDATE, DELETE):
            ops[m] = kind
            relations[m] = _number(raw, at + 1, 4)
    return keep, end


@nb.njit(cache=True, nogil=True)
def _tuple(raw: U8, at: int, end: int, place: I64, begins: I64, lengths: I64, row: int) -> int:
    """Note the values of a tuple that are wanted; return where it ends, or -1."""
    if at + 2 > end:
        return -1
    count = _number(raw, at, 2)
    at += 2
    if count != place.shape[0]:
        return -1
    for column in range(count):
        if at >= end:
            return -1
        kind = raw[at]
        at += 1
        length = NULL if kind == _N else ABSENT
        if kind == _T:
            length = _number(raw, at, 4) if at + 4 <= end else end
            at += 4
            if length > end - at:
                return -1
        elif kind != _N and kind != _U:
            return -1
        if place[column] >= 0:
            begins[place[column], row] = at
            lengths[place[column], row] = length
        if length > 0:
            at += length
    return at


@nb.njit(cache=True, nogil=True)
def _same(raw: U8, begins: I64, lengths: I64, column: int, row: int, other: int) -> bool:
    size = lengths[column, row]
    if size != lengths[column, other]:
        return False
    a, b = begins[column, row], begins[column, other]
    for i in range(size):  # noqa: SIM110
        if raw[a + i] != raw[b + i]:
            return False
    return True


@nb.njit(cache=True, nogil=True)
def _all_same(raw: U8, begins: I64, lengths: I64, compared: I64, row: int, other: int) -> bool:
    for column in compared:  # noqa: SIM110
        if not _same(raw, begins, lengths, column, row, other):
            return False
    return True


@nb.njit(cache=True, nogil=True)
def _filled(
    begins: I64, lengths: I64, identity: U8, whole: bool, width: int, old: int, new: int
) -> tuple[int, int]:
    """Take values that were not sent from the old row, where that has them.

    Return the bits of those that are still missing, and their number.
    """
    missing, count = 0, 0
    for column in range(width):
        if lengths[column, new] != ABSENT:
            continue
        if old >= 0 and (whole or identity[column]) and lengths[column, old] != ABSENT:
            begins[column, new] = begins[column, old]
            lengths[column, new] = lengths[column, old]
        else:
            missing |= 1 << column
            count += 1
    return missing, count


@nb.njit(cache=True, nogil=True)
def _read(
    raw: U8, at: int, end: int, kind: int, place: I64, begins: I64, lengths: I64, row: int
) -> tuple[int, int]:
    """Note the tuples of a change from `row` on; return the rows of the old one and the new one.

    A row of -1 says that there is none, of -2 that the message cannot be read.
    """
    old, new = -1, -1
    if raw[at] != _NEW:
        old = row
        at = _tuple(raw, at + 1, end, place, begins, lengths, row)
        row += 1
    if at >= 0 and kind != DELETE:
        new = row
        there = at < end and raw[at] == _NEW
        at = _tuple(raw, at + 1, end, place, begins, lengths, row) if there else -1
    if at < 0:
        return -2, -2
    return old, new


@nb.njit(cache=True, nogil=True)
def _came(
    raw: U8,
    identity: U8,
    key: I64,
    upsert: bool,
    whole: bool,
    old: int,
    new: int,
    begins: I64,
    lengths: I64,
    weights: I64,
    unchanged: I64,
) -> tuple[int, int]:
    """Weigh the rows of an insertion or an update; return how many count, and a word of how it ended."""
    weights[new] = 1
    unchanged[new], missing = _filled(begins, lengths, identity, whole, begins.shape[0], old, new)
    if old < 0:
        return 1, NOT_FULL if missing and not upsert else FINE
    if not _all_same(raw, begins, lengths, key, old, new):
        return 2, UNKNOWN if missing else FINE
    if not upsert:
        return 0, FINE
    for column in range(begins.shape[0]):  # the key is the same, so the new row replaces the old one
        begins[column, old] = begins[column, new]
        lengths[column, old] = lengths[column, new]
    weights[old], unchanged[old] = 1, unchanged[new]
    return 1, FINE


@nb.njit(cache=True, nogil=True)
def tuples(
    raw: U8,
    starts: I32,
    messages: I64,
    place: I64,
    identity: U8,
    key: I64,
    upsert: bool,
    begins: I64,
    lengths: I64,
    weights: I64,
    unchanged: I64,
) -> tuple[int, int]:
    """Fill the rows of some messages of one table; return their number and a word of how it ended.

    If it did not end well, the number is that of the message.

    Args:
        raw: The messages.
        starts: Where each begins, and the end.
        messages: Those of the table.
        place: For each column of the table, the number of the wanted column that it is, or -1.
        identity: For each wanted column, whether an old key holds it.
        key: The wanted columns that are the key; without `upsert` all of them.
        upsert: Whether rows replace that of their key; else old rows must have been sent whole.
        begins: Filled, [column, row]: two rows for each message at most.
        lengths: Filled, likewise.
        weights: Filled.
        unchanged: Filled.
    """
    rows = 0
    for m in messages:
        kind, at = raw[starts[m]], starts[m] + 5
        whole = raw[at] == _OLD
        old, new = _read(raw, at, starts[m + 1], kind, place, begins, lengths, rows)
        if old == -2:
            return m, MALFORMED
        if not upsert and kind != INSERT and not whole:
            return m, NOT_FULL
        if old >= 0:
            weights[old], unchanged[old] = -1, 0
        count, word = 1, FINE
        if new >= 0:
            count, word = _came(
                raw, identity, key, upsert, whole, old, new, begins, lengths, weights, unchanged
            )
        if word != FINE:
            return m, word
        rows += count
    return rows, FINE


@nb.njit(cache=True, nogil=True)
def ends(lengths: I64, cut: int) -> I64:
    """Return where each value will end when all are written one after the other, each `cut` shorter."""
    found = np.zeros(lengths.shape[0] + 1, np.int64)
    total = np.int64(0)
    for row in range(lengths.shape[0]):
        if lengths[row] > cut:
            total += lengths[row] - cut
        found[row + 1] = total
    return found


@nb.njit(cache=True, nogil=True)
def copied(raw: U8, begins: I64, offsets: I64, out: U8) -> None:
    """Write values one after the other."""
    for row in range(begins.shape[0]):
        at = begins[row]
        for i in range(offsets[row], offsets[row + 1]):
            out[i] = raw[at]
            at += 1


@nb.njit(cache=True, nogil=True)
def trimmed(raw: U8, begins: I64, lengths: I64) -> None:
    """Shorten values by the blanks that they end with."""
    for row in range(begins.shape[0]):
        while lengths[row] > 0 and raw[begins[row] + lengths[row] - 1] == 32:
            lengths[row] -= 1


@nb.njit(cache=True, nogil=True)
def unhexed(raw: U8, begins: I64, lengths: I64, offsets: I64, out: U8) -> bool:
    r"""Write bytes from texts such as \x00ff; return whether all of them are such texts."""
    for row in range(begins.shape[0]):
        if lengths[row] < 0:
            continue
        at = begins[row]
        if lengths[row] < 2 or lengths[row] % 2 or raw[at] != 92 or raw[at + 1] != 120:
            return False
        for i in range(offsets[row], offsets[row + 1]):
            at += 2
            value = 0
            for digit in raw[at : at + 2]:
                value = 16 * value + (digit - 48 if digit < 58 else digit - 87)
            out[i] = value
    return True
