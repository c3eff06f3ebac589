"""Is this hash surely not among those? A blocked Bloom filter: the bits of a hash lie in one line of the processor's cache.

    blocks of 512 bits (8 words), about 10 bits a hash, of which each sets 5: of those that are not there 1.5 % pass

A block stands for a range of hashes, so hashes in ascending order walk the filter forward, as they walk all else.
(Putze, Sanders and Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007; UMJoin, section 3.1.2.)

Law: a hash that is there always passes.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]

_WORDS = 8  # of a block
_BLOCK_BITS = 512
_PER_HASH = 10
_BITS = 5
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # the bits in a block must not hang on those that chose it
_HALF, _POSITION, _WORD, _IN_WORD, _ONE = (np.uint64(n) for n in (32, 9, 6, 63, 1))
_TOP = np.uint64(64 - 9)


class Bloom(NamedTuple):
    """The filter of hashes from `first` on, and how a hash becomes the number of a block."""

    words: U64
    first: np.uint64
    shift: np.uint64
    factor: np.uint64


def of_words(words: U64, first: int, last: int) -> Bloom:
    """The filter that has these words, for hashes between `first` and `last`."""
    shift = 64 - (last - first).bit_length()
    most = (last - first << shift) >> 32
    factor = (len(words) // _WORDS << 32) // (most + 1)
    return Bloom(words, np.uint64(first), np.uint64(min(shift, 63)), np.uint64(factor))


def bloom(hashes: U64) -> Bloom:
    """The filter of ascending hashes, of which there is one at least. O(hashes)."""
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
    """False: the hash is not there. It lies between the first and the last that the filter was made for."""
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
    """The first word of the hash's block."""
    high = ((np.uint64(sought) - filter.first) << filter.shift) >> _HALF
    return np.int64(high * filter.factor >> _HALF) * _WORDS
