"""Hot keys: how uneven was a batch, and which rule would have spread it evenly? (BS-Join, section 4, algorithm 2.)

    batch n     count the rows of each unit, sample its hashes (a reservoir) ─► DS, equation 3
                DS over the threshold ─► the sample in order, cut into shares of equal weight ─► the rule of batch n + 1

    a rule      hashes   |----|--|------|-------|      bounds: unit u has the hashes from bounds[u - 1] to bounds[u]
                hot                 ▲                  a heavy key that lies across shares: its rows go to all of them in turn

Only for streams of which nothing is stored: any unit can look up any row, so every rule gives the same answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_HEAVY = (
    0.05  # of a share: a lighter key that lies across two shares goes to one of them, and is hardly missed
)
_GOLDEN = 0.6180339887498949  # its multiples, less their whole part, fill [0, 1) as evenly as can be


@dataclass(frozen=True)
class Hot:
    """A key's rows go to the units that the shares [start, start + length) lie in."""

    hash: int
    start: float
    length: float


@dataclass(frozen=True)
class Rule:
    """Which unit a row goes to, by the hash of its key."""

    bounds: tuple[int, ...]  # one less than units, ascending
    hot: tuple[Hot, ...] = ()

    def units(self, hashes: U64) -> I64:
        """The unit of each row, shape (rows,). Pure: the same rows in the same order go the same ways. O(rows log units)."""
        found = np.searchsorted(np.array(self.bounds, np.uint64), hashes, side="right").astype(np.int64)
        for hot in self.hot:
            rows = np.flatnonzero(hashes == np.uint64(hot.hash))
            turn = (np.arange(len(rows)) * _GOLDEN) % 1.0
            found[rows] = np.minimum(hot.start + turn * hot.length, len(self.bounds)).astype(np.int64)
        return found

    def encode(self) -> dict[str, Any]:
        """Plain values, for the source's offset."""
        return {"bounds": list(self.bounds), "hot": [[h.hash, h.start, h.length] for h in self.hot]}


def decode(raw: dict[str, Any] | None) -> Rule | None:
    """Inverse of `Rule.encode`."""
    return Rule(tuple(raw["bounds"]), tuple(Hot(*h) for h in raw["hot"])) if raw else None


def skew(counts: Sequence[int]) -> float:
    """DS of equation 3: the standard deviation of the units' rows over their mean; 0 is even."""
    if len(counts) < 2 or not sum(counts):
        return 0.0
    return float(np.std(counts, ddof=1) / np.mean(counts))


def rule(sample: U64, units: int) -> Rule:
    """The rule that cuts a sample of rows into equal shares (algorithm 2). O(sample log sample)."""
    keys, weights = np.unique(sample, return_counts=True)
    share = max(len(sample) / units, 1e-9)
    ends = np.cumsum(weights) / share
    starts = ends - weights / share
    home = np.minimum((starts + ends) / 2, units - 1).astype(np.int64)
    first = np.searchsorted(
        home, np.arange(1, units), side="left"
    )  # the first key of each unit but the first
    most = np.uint64(2**64 - 1)
    bounds = [int(keys[at]) if at < len(keys) else int(most) for at in first]
    heavy = np.flatnonzero((weights > _HEAVY * share) & (starts.astype(np.int64) < np.ceil(ends - 1e-9) - 1))
    hot = tuple(Hot(int(keys[i]), float(starts[i]), float(weights[i] / share)) for i in heavy)
    return Rule(tuple(bounds), hot)


class Reservoir:
    """A uniform sample of at most `size` of the rows that were seen, in one pass: those that drew the lowest tags."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self._draw = size, np.random.default_rng(seed)
        self._tags, self.sample = np.zeros(0), np.zeros(0, np.uint64)

    def see(self, hashes: U64) -> None:
        """O(rows)."""
        tags = np.concatenate([self._tags, self._draw.random(len(hashes))])
        seen = np.concatenate([self.sample, hashes])
        kept = np.argpartition(tags, self.size)[: self.size] if len(tags) > self.size else slice(None)
        self._tags, self.sample = tags[kept], seen[kept]
