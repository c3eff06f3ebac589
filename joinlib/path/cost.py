"""The cost, in seconds, of carrying one new row along a path (dpPick, equations 1 to 8, over any join graph).

    C(o_i) = [αx if the key changes] + αq f_l(κ_r) + γ_lr (αm μ_lr + μ_lr C(o_i+1)),    C(o_n) = 0

f depends on who asks, too: a filter lets pass what will be found. Two terms are not in the paper. αx: a tuple
goes to the unit of another key, through an exchange. And what follows is multiplied by μ, because each tuple
that is found asks for itself; `fanned` False is the paper's equation 8, where all that is found for a row goes
on as one list.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from joinlib.path.graph import Arrangement, Key, Path, Probe

FILTERED = 0.015  # share of the keys of other runs that a Bloom filter lets through
PAGE_READ = 300.0  # a page from the disk: 0.1 ms, where a query in memory takes 0.3 µs


@dataclass(frozen=True)
class PathCosts:
    """What probes of each arrangement cost and find: the statistics of a cycle, or the planner's estimates.

    Tables have shape (inputs, arrangements): by the input that asks, then by the arrangement that is asked.
    """

    query: tuple[tuple[float, ...], ...]  # αq f(κ), equation 4
    match: float  # αm
    rate: tuple[tuple[float, ...], ...]  # γ, equation 9
    per_hit: tuple[tuple[float, ...], ...]  # μ, equation 10
    exchange: float = 0.0  # αx
    fanned: bool = True

    def step(self, probe: Probe, rest: float, moved: bool) -> float:
        """Return the cost of this probe and of all after it, which cost `rest` for a tuple.

        moved: whether the tuple has come through an exchange for it.
        """
        found = self.rate[probe.asker][probe.arrangement] * self.per_hit[probe.asker][probe.arrangement]
        here = self.query[probe.asker][probe.arrangement] + self.match * found + rest * self.grown(probe)
        return here + (self.exchange if moved else 0.0)

    def grown(self, probe: Probe) -> float:
        """Return how many askers a tuple becomes by this probe."""
        rate = self.rate[probe.asker][probe.arrangement]
        return rate * self.per_hit[probe.asker][probe.arrangement] if self.fanned else rate

    def cost(self, path: Path, arrangements: Sequence[Arrangement], home: Key | None = None) -> float:
        """Return equations 1 to 3: the cost of the whole path for one row.

        home: the key by which the row comes in; None: that of the first probe.
        """
        keys = [arrangements[probe.arrangement].key for probe in path.probes]
        come = keys[:1] if home is None else [home]
        rest = 0.0
        for at, before in reversed([*enumerate([*come, *keys[:-1]])]):
            rest = self.step(path.probes[at], rest, keys[at] != before)
        return rest

    def found(self, path: Path) -> tuple[float, ...]:
        """Return how many tuples one row has become after each probe."""
        counts, now = [], 1.0
        for probe in path.probes:
            now *= self.rate[probe.asker][probe.arrangement] * self.per_hit[probe.asker][probe.arrangement]
            counts.append(now)
        return tuple(counts)


@dataclass(frozen=True)
class SearchedRun:
    """A run of stored rows as a probe meets it; a head has hash chains, a sorted run a filter and an order."""

    keys: float  # κ
    slots: int = 0  # of the hash chains; 0: the run is sorted by hash
    cached: float = 1.0  # share of its pages that are in memory


def search_cost(
    runs: Sequence[SearchedRun], rate: float, basic: float = 1.0, read: float = PAGE_READ
) -> float:
    """Return f(κ) of a state of several runs, in units of αq: equation 5 for hash chains, 6 for sorted runs.

    A sorted run is asked by its filter first; what passes is found by binary search, and read from the disk
    where it is not cached. rate: γ, the share of probes that find something; each run finds its share of them.
    """
    total, keys = 0.0, sum(run.keys for run in runs)
    for run in runs:
        if run.slots:
            total += basic + run.keys / (2 * run.slots)
            continue
        found = rate * run.keys / keys if keys else 0.0
        passes = found + (1.0 - found) * FILTERED
        total += basic + passes * (math.log2(max(run.keys, 1.0)) + read * (1.0 - run.cached))
    return total
