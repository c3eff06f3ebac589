"""The cost, in seconds, of carrying one row through a sequence of probes (dpPick, equations 2 to 5 and 8 to 10)."""

from collections.abc import Sequence
from dataclasses import dataclass

Matrix = tuple[tuple[float, ...], ...]
Pair = tuple[int, int]  # <l, r>: tuples that contain input l probe input r


def hashed(keys: float, slots: int, basic: float = 1.0) -> float:
    """Return equation 5, f(κ) of a hash table: the fixed cost of a query plus half the mean chain."""
    return basic + keys / (2 * slots)


@dataclass(frozen=True)
class CostModel:
    """Statistics of one cycle, as costs.

    fanned: each tuple found probes by itself, as in this engine, so the following probes cost μ times as
    much. In the paper all tuples found for a row are passed on as one list, whose key probes once.
    """

    query: tuple[float, ...]  # of each input r: αq f(κ_r), equation 4
    match: float  # αm
    rate: Matrix  # γ[l][r], equation 9
    per_hit: Matrix  # μ[l][r], equation 10
    fanned: bool = True

    def step(self, pair: Pair, rest: float) -> float:
        """Return equation 8: the cost of this probe and of all probes after it, which cost `rest`."""
        l, r = pair  # noqa: E741 - as in the paper
        found = self.per_hit[l][r]
        return self.query[r] + self.rate[l][r] * (self.match * found + rest * (found if self.fanned else 1.0))

    def cost(self, sequence: Sequence[Pair]) -> float:
        """Return equations 2 and 3: the cost of the whole sequence."""
        rest = 0.0
        for pair in reversed(sequence):
            rest = self.step(pair, rest)
        return rest
