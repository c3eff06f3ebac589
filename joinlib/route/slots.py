"""Grouping keys that Spark's hash partitioning spreads evenly: pmod(hash(slot of unit u), units) = u.

Spark puts a row into partition pmod(murmur3(key, 42), partitions). The keys 0..7 leave one of four partitions
empty; slots fill `units` partitions, and any smaller power of two, with the same number of units each.
"""

from functools import cache

from joinlib.errors import SpecError


@cache
def slots(units: int) -> tuple[int, ...]:
    """Return the INT to group by for each unit, the smallest that fits. About units * ln(units) hashes."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < units:
        found.setdefault(_murmur3(candidate) % units, candidate)
        candidate += 1
    return tuple(found[unit] for unit in range(units))


def fitting(units: int, tasks: int) -> int:
    """Return the smallest number of partitions that lets `tasks` tasks join in parallel.

    It is a power of two, and at most `units`.
    """
    return min(units, 1 << max(tasks - 1, 0).bit_length())


def check(units: int, partitions: int) -> None:
    """Check that units can be spread evenly over this number of partitions.

    Raises:
        SpecError: it is not a power of two from 1 to `units`.
    """
    if not 1 <= partitions <= units or partitions & (partitions - 1):
        raise SpecError(
            f"{partitions} partitions: write a power of two from 1 to join.units, which is {units}"
        )


def _murmur3(value: int, seed: int = 42) -> int:
    """Return Murmur3 (x86, 32 bits) of one 4-byte integer, like Spark's `hash`; signed."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = seed ^ k
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & mask
    h ^= h >> 13
    h = h * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
