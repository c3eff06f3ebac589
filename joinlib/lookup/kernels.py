"""The loops of the lookups, compiled once (numba, cached on disk).

An entry of the incremental cache is one row of 48 bytes, so that finding it and noting that it was used touch
one line of the processor's cache. Entries are numbered in the order in which they came and are evicted in
that order: entry e is in row e % capacity, a chain leads from newer to older numbers, and a number below
`tail` ends it. So no entry is ever unlinked.
"""

import numba as nb
import numpy as np

from joinlib.arrays import I32, I64, U64

HASH, NEXT, EXPIRY, START, COUNT, USED = range(6)
WIDTH = 6


@nb.njit(cache=True, nogil=True)
def directory(hashes: U64, bits: int) -> I32:
    """Return where the hashes of each value of the top `bits` bits begin, and the end. O(rows + 2^bits).

    `hashes` are in ascending order.
    """
    down = np.uint64(64 - bits)
    starts = np.zeros((1 << bits) + 1, np.int32)
    for row in range(hashes.shape[0]):
        starts[(hashes[row] >> down) + np.uint64(1)] += 1
    for bucket in range(1 << bits):
        starts[bucket + 1] += starts[bucket]
    return starts


@nb.njit(cache=True, nogil=True)
def probe(
    starts: I32, hashes: U64, bits: int, wanted: U64, at: int, row: int, out_wanted: I32, out_row: I32
) -> tuple[int, int, int]:
    """Fill the out arrays with pairs of equal hash, from wanted row `at`
    and table row `row` (-1: its first) on.

    Return the number of pairs and where to continue; at == len(wanted) when all is done. O(rows probed +
    pairs).
    """
    down = np.uint64(64 - bits)
    found, room = 0, out_row.shape[0]
    while at < wanted.shape[0]:
        sought = wanted[at]
        bucket = sought >> down
        if row < 0:
            row = starts[bucket]
        end = starts[bucket + np.uint64(1)]
        while row < end and hashes[row] <= sought:
            if hashes[row] == sought:
                if found == room:
                    return found, at, row
                out_wanted[found] = at
                out_row[found] = row
                found += 1
            row += 1
        at += 1
        row = -1
    return found, at, row


@nb.njit(cache=True, nogil=True)
def find(
    heads: I64,
    entries: I64,
    bits: int,
    tail: int,
    now: int,
    wanted: U64,
    after: I64,
    found: I64,
    starts: I64,
    counts: I64,
) -> None:
    """For each wanted hash find the newest entry that is alive at `now`, -1
    if there is none, and mark it as used.

    `after[i]`: -1, or an entry with another key: the search continues behind it. Where an entry is found,
    `starts` and `counts` are set to its rows, since they are in the cache line that was just read. O(chain
    links).
    """
    down, mask = np.uint64(64 - bits), entries.shape[0] - 1
    for i in range(wanted.shape[0]):
        sought = np.int64(wanted[i])
        entry = heads[wanted[i] >> down] - 1 if after[i] < 0 else entries[after[i] & mask, NEXT] - 1
        found[i] = -1
        while entry >= tail:
            line = entry & mask
            if entries[line, HASH] == sought and entries[line, EXPIRY] > now:
                found[i] = entry
                if not entries[line, USED]:
                    entries[line, USED] = 1
                starts[i], counts[i] = entries[line, START], entries[line, COUNT]
                break
            entry = entries[line, NEXT] - 1


@nb.njit(cache=True, nogil=True)
def expired(heads: I64, entries: I64, bits: int, tail: int, now: int, wanted: U64) -> int:
    """Count the hashes, among those that were not found, with an entry that has expired by `now`.

    O(chain links).
    """
    down, mask, count = np.uint64(64 - bits), entries.shape[0] - 1, 0
    for i in range(wanted.shape[0]):
        sought, entry = np.int64(wanted[i]), heads[wanted[i] >> down] - 1
        while entry >= tail:
            line = entry & mask
            if entries[line, HASH] == sought and entries[line, EXPIRY] <= now:
                count += 1
                break
            entry = entries[line, NEXT] - 1
    return count


@nb.njit(cache=True, nogil=True)
def append(
    heads: I64,
    entries: I64,
    bits: int,
    first: int,
    hashes: U64,
    expiry: I64,
    starts: I64,
    counts: I64,
) -> None:
    """Add the entries first, first + 1, ...; their rows of the ring are free."""
    down, mask = np.uint64(64 - bits), entries.shape[0] - 1
    for i in range(hashes.shape[0]):
        line, bucket = (first + i) & mask, hashes[i] >> down
        entries[line, HASH] = np.int64(hashes[i])
        entries[line, NEXT] = heads[bucket]
        entries[line, EXPIRY] = expiry[i]
        entries[line, START] = starts[i]
        entries[line, COUNT] = counts[i]
        entries[line, USED] = 0
        heads[bucket] = first + i + 1


@nb.njit(cache=True, nogil=True)
def expand(starts: I64, counts: I64, total: int) -> tuple[I64, I64]:
    """List every row of every span as (number of the span, row)."""
    owners, rows = np.empty(total, np.int64), np.empty(total, np.int64)
    at = 0
    for i in range(starts.shape[0]):
        for k in range(counts[i]):
            owners[at] = i
            rows[at] = starts[i] + k
            at += 1
    return owners, rows
