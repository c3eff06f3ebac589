"""Finds rows that are ordered by the hash of their key, through a directory over the hashes' top bits.

Everything is immutable. A probe costs one access to the directory and, as rows of a key are adjacent, one to
the rows: probes in the order of their hashes walk forward through both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joinlib.arrays import I32, I64, U64
from joinlib.expr.compare import same
from joinlib.lookup import kernels

Keys = Sequence[pa.Array]

_PAIRS = 1 << 20  # pairs in one chunk
_MOST_BITS = 26


@dataclass(frozen=True)
class SortedHashes:
    """Hashes in ascending order; `starts` is their directory."""

    hashes: U64
    starts: I32

    @classmethod
    def of(cls, hashes: U64) -> "SortedHashes":
        """Build the directory of hashes that are in ascending order."""
        return cls(hashes, kernels.directory(hashes, _bits(len(hashes))))

    def probe(self, wanted: U64, limit: int = _PAIRS) -> Iterator[tuple[I32, I32]]:
        """Yield pairs (position in `wanted`, row) of equal hash, at most
        `limit` at a time, ascending by position.
        """
        at, row, bits = 0, -1, (len(self.starts) - 1).bit_length() - 1
        room = min(limit, max(2 * len(wanted), 64))
        while at < len(wanted):
            positions, rows = np.empty(room, np.int32), np.empty(room, np.int32)
            found, at, row = kernels.probe(self.starts, self.hashes, bits, wanted, at, row, positions, rows)
            if found:
                yield positions[:found], rows[:found]
            room = limit


def same_keys(left: Keys, right: Keys, exact: bool) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows with equal keys, for rows whose hashes are equal."""
    mask = np.ones(len(left[0]), np.bool_)
    if exact:
        return mask
    for a, b in zip(left, right, strict=True):
        mask &= same(a, b).to_numpy(zero_copy_only=False)
    return mask


def take(keys: Keys, positions: npt.NDArray[np.integer]) -> list[pa.Array]:
    """Take the keys at these positions."""
    at = pa.array(positions)
    return [pc.take(k, at, boundscheck=False) for k in keys]


def match(keys: Keys, hashes: U64, among: Keys, among_hashes: U64, exact: bool) -> I64:
    """For each key return the position of the first equal one in `among`, or -1. O(n log
    n), n = len(among).
    """
    order = np.argsort(among_hashes, kind="stable")
    index = SortedHashes.of(among_hashes[order])
    found = np.full(len(hashes), len(order), np.int64)
    for positions, rows in index.probe(hashes):
        candidates = order[rows]
        equal = same_keys(take(keys, positions), take(among, candidates), exact) if not exact else slice(None)
        np.minimum.at(found, positions[equal], candidates[equal])
    found[found == len(order)] = -1
    return found


def distinct(keys: Keys, hashes: U64, exact: bool) -> tuple[I64, I64]:
    """Return the positions of one row for each distinct key, and for each
    row the index of its key among them.
    """
    if exact:
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        return first.astype(np.int64), inverse.astype(np.int64)
    names = [str(i) for i in range(len(keys))]
    table = pa.table([*keys, pa.array(np.arange(len(hashes)))], [*names, "at"])
    first = np.sort(table.group_by(names).aggregate([("at", "min")]).column("at_min").to_numpy())
    some, some_hashes = take(keys, first), hashes[first]
    owner = match(some, some_hashes, some, some_hashes, exact)  # 0.0 and -0.0 are two groups, but one key
    first = first[owner == np.arange(len(first))]
    return first, match(keys, hashes, take(keys, first), hashes[first], exact)


def _bits(rows: int) -> int:
    return min(max(rows - 1, 1).bit_length(), _MOST_BITS)
