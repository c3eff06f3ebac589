"""Hot keys: measures the skew of a batch and finds the rule that evens it out (BS-Join, section 4,
algorithm 2).

    batch n   count the rows of each unit, sample their hashes (a reservoir) ─► DS, equation 3
              DS over the threshold ─► sort the sample, cut it into equal shares ─► rule of batch n + 1

    a rule    hashes   |----|--|------|-------|    bounds: unit u has hashes from bounds[u - 1] to bounds[u]
              hot                 ▲                a heavy key across shares: its rows go to each in turn

This is only for streams of which nothing is stored: any unit can look up any row, so every rule gives the
same result.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from joinlib.arrays import I64, U64

# Part of a share from which a key is heavy: a lighter key across two shares goes to one, at little imbalance.
_HEAVY = 0.05
_BITS = 12  # top bits of a hash that index the bounds near it
_LOOKED_AT = 32_768  # rows of a sample that are examined: a share is accurate to half a percent
_GOLDEN = 0.6180339887498949  # the fractional parts of its multiples fill [0, 1) evenly


@dataclass(frozen=True)
class Hot:
    """A hot key, whose rows go to the units that the shares [start, start + length) lie in."""

    hash: int
    start: float
    length: float


@dataclass(frozen=True)
class RoutingRule:
    """Maps the hash of a row's key to a unit."""

    bounds: tuple[int, ...]  # ascending, one fewer than units
    hot: tuple[Hot, ...] = ()

    def units(self, hashes: U64) -> I64:
        """Return the unit of each row, shape (rows,). O(rows).

        A pure function: the same rows in the same order go to the same units.
        """
        bounds, hot = np.array(self.bounds, np.uint64), sorted(self.hot, key=lambda h: h.hash)
        cuts = np.unique(bounds)  # where a key fills more than a share, several units have the same bound
        behind = np.concatenate([[0], np.searchsorted(bounds, cuts, side="right")])
        keys = np.array([h.hash for h in hot], np.uint64)
        shares = np.array([(h.start, h.length) for h in hot], np.float64).reshape(-1, 2)
        firsts = np.arange(1 << _BITS, dtype=np.uint64) << np.uint64(64 - _BITS)
        near = np.searchsorted(cuts, firsts, side="right"), np.searchsorted(keys, firsts)
        return _units(hashes, cuts, behind, keys, shares, *near)

    def encode(self) -> dict[str, Any]:
        """Return plain values, to be saved in the source's offset."""
        return {"bounds": list(self.bounds), "hot": [[h.hash, h.start, h.length] for h in self.hot]}


def decode(raw: dict[str, Any] | None, units: int) -> RoutingRule | None:
    """Return the inverse of `RoutingRule.encode`; None for a rule of another number of units, as before a division."""
    if raw is None or len(raw["bounds"]) != units - 1:
        return None
    return RoutingRule(tuple(raw["bounds"]), tuple(Hot(*h) for h in raw["hot"]))


def skew(counts: Sequence[int]) -> float:
    """Return DS of equation 3: the standard deviation of the units' rows divided by their mean; 0 is even."""
    if len(counts) < 2 or not sum(counts):
        return 0.0
    return float(np.std(counts, ddof=1) / np.mean(counts))


def share(sample: U64, hot: Collection[int]) -> float | None:
    """Return the part of a sample that has these keys, by hash; None for an empty sample.

    O(log keys) for each of a bounded number of rows.
    """
    if not len(sample):
        return None
    looked_at, keys = sample[:: 1 + len(sample) // _LOOKED_AT], np.array(sorted(hot), np.uint64)
    if not len(keys):
        return 0.0
    at = np.minimum(np.searchsorted(keys, looked_at), len(keys) - 1)
    return float(np.mean(keys[at] == looked_at))


def rule(sample: U64, units: int) -> RoutingRule:
    """Return the rule that cuts a sample of rows into equal shares (algorithm 2). O(sample log sample)."""
    keys, weights = np.unique(sample, return_counts=True)
    share = max(len(sample) / units, 1e-9)
    ends = np.cumsum(weights) / share
    starts = ends - weights / share
    home = np.minimum((starts + ends) / 2, units - 1).astype(np.int64)
    # The first key of each unit except unit 0.
    first = np.searchsorted(home, np.arange(1, units), side="left")
    most = np.uint64(2**64 - 1)
    bounds = [int(keys[at]) if at < len(keys) else int(most) for at in first]
    heavy = np.flatnonzero((weights > _HEAVY * share) & (starts.astype(np.int64) < np.ceil(ends - 1e-9) - 1))
    hot = tuple(Hot(int(keys[i]), float(starts[i]), float(weights[i] / share)) for i in heavy)
    return RoutingRule(tuple(bounds), hot)


@nb.njit(cache=True, nogil=True)
def _units(
    hashes: U64,
    cuts: U64,
    behind: I64,
    hot: U64,
    shares: npt.NDArray[np.float64],
    near_cut: I64,
    near_hot: I64,
) -> I64:
    """Return the units of hashes; `behind[n]` is the unit after n cuts.

    near_cut, near_hot: for a hash's top bits, the cut or hot key at which the search begins.
    """
    found, turns, down = np.empty(hashes.shape[0], np.int64), np.zeros(hot.shape[0]), np.uint64(64 - _BITS)
    for i in range(hashes.shape[0]):
        sought = hashes[i]
        cut, key = near_cut[sought >> down], near_hot[sought >> down]
        while cut < cuts.shape[0] and cuts[cut] <= sought:
            cut += 1
        while key < hot.shape[0] and hot[key] < sought:
            key += 1
        if key < hot.shape[0] and hot[key] == sought:
            turn = (turns[key] * _GOLDEN) % 1.0
            turns[key] += 1.0
            found[i] = min(np.int64(shares[key, 0] + turn * shares[key, 1]), behind[-1])
        else:
            found[i] = behind[cut]
    return found


class Reservoir:
    """A uniform sample of at most `size` rows, in one pass: those with the lowest random tags."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self._draw, self._below = size, np.random.default_rng(seed), 1.0
        self._tags, self.sample = np.zeros(0), np.zeros(0, np.uint64)

    def see(self, hashes: U64) -> None:
        """Sample from these rows as well. O(rows)."""
        drawn = self._draw.random(len(hashes))
        near = np.flatnonzero(drawn < self._below)
        tags = np.concatenate([self._tags, drawn[near]])
        seen = np.concatenate([self.sample, hashes[near]])
        if len(tags) > self.size:
            kept = np.argpartition(tags, self.size)[: self.size]
            tags, seen = tags[kept], seen[kept]
            self._below = float(tags.max())
        self._tags, self.sample = tags, seen
