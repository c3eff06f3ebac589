"""A blocked Bloom filter: the bits of a hash lie in one cache line of the processor.

    blocks of 512 bits (8 words), about 10 bits per hash, each of which sets 5: 1.5 % of absent hashes pass

A block covers a range of hashes, so hashes in ascending order walk the filter forward, like everything else
here. (Putze, Sanders and Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007; UMJoin, section
3.1.2.)

Law: a hash that is present always passes.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from joinlib.arrays import U64

_WORDS = 8  # words of a block
_BLOCK_BITS = 512
_PER_HASH = 10
_BITS = 5
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # makes the bits in a block independent of those that chose it
_HALF, _POSITION, _WORD, _IN_WORD, _ONE = (np.uint64(n) for n in (32, 9, 6, 63, 1))
_TOP = np.uint64(64 - 9)


class Bloom(NamedTuple):
    """The filter of hashes from `first` on, and the constants that map a hash to the number of a block."""

    words: U64
    first: np.uint64
    shift: np.uint64
    factor: np.uint64


def of_words(words: U64, first: int, last: int) -> Bloom:
    """Return the filter with these words, for hashes between `first` and `last`."""
    shift = 64 - (last - first).bit_length()
    most = (last - first << shift) >> 32
    factor = (len(words) // _WORDS << 32) // (most + 1)
    return Bloom(words, np.uint64(first), np.uint64(min(shift, 63)), np.uint64(factor))


def bloom(hashes: U64) -> Bloom:
    """Return the filter of ascending hashes, at least one. O(hashes)."""
    blocks = -(-len(hashes) * _PER_HASH // _BLOCK_BITS)
    empty = of_words(np.zeros(_WORDS * blocks, np.uint64), int(hashes[0]), int(hashes[-1]))
    _set(empty, hashes)
    return empty


@nb.njit(cache=True, nogil=True)
def _set(filter: Bloom, hashes: U64) -> None:
    for sought in hashes:
        block = _block(filter, sought)
        bits = sought * _SPREAD
        for _ in range(_BITS):
            at = bits >> _TOP
            filter.words[block + np.int64(at >> _WORD)] |= _ONE << (at & _IN_WORD)
            bits <<= _POSITION


@nb.njit(cache=True, inline="always")
def passes(filter: Bloom, sought: int) -> bool:
    """Return False only if the hash is absent. It must lie between the filter's first and last hash."""
    block = _block(filter, sought)
    bits = np.uint64(sought) * _SPREAD
    for _ in range(_BITS):
        at = bits >> _TOP
        if not filter.words[block + np.int64(at >> _WORD)] >> (at & _IN_WORD) & _ONE:
            return False
        bits <<= _POSITION
    return True


@nb.njit(cache=True, inline="always")
def _block(filter: Bloom, sought: int) -> np.int64:
    """Return the first word of the hash's block."""
    high = ((np.uint64(sought) - filter.first) << filter.shift) >> _HALF
    return np.int64(high * filter.factor >> _HALF) * _WORDS
