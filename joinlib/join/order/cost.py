"""What does it cost to carry one row through a sequence of probes? Seconds (dpPick, equations 4 to 8)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Matrix = tuple[tuple[float, ...], ...]
Pair = tuple[int, int]  # <l, r>: rows that have l ask for partners in r


def hashed(keys: float, slots: int, basic: float = 1.0) -> float:
    """Equation 5, f(κ) of a hash table: what every query costs, and half the mean chain."""
    return basic + keys / (2 * slots)


def sorted_(keys: float) -> float:
    """Equation 6, f(κ) of a sorted array."""
    return math.log2(max(keys, 2.0))


@dataclass(frozen=True)
class Model:
    """Statistics of one cycle, as costs.

    fanned: each tuple that was found asks for itself, as in this engine; so what follows costs μ times as much.
    The paper hands all that was found for a row on as one list, whose key asks once.
    """

    query: tuple[float, ...]  # of each input r: αq f(κ_r), equation 4
    match: float  # αm
    rate: Matrix  # γ[l][r], equation 9
    per_hit: Matrix  # μ[l][r], equation 10
    fanned: bool = True

    def step(self, pair: Pair, rest: float) -> float:
        """Equation 8: this probe and all behind it, which cost `rest`."""
        l, r = pair  # noqa: E741 - as in the paper
        found = self.per_hit[l][r]
        return self.query[r] + self.rate[l][r] * (self.match * found + rest * (found if self.fanned else 1.0))

    def cost(self, sequence: Sequence[Pair]) -> float:
        """Equations 2 and 3: of the whole sequence."""
        rest = 0.0
        for pair in reversed(sequence):
            rest = self.step(pair, rest)
        return rest
