"""What did lookups of one table do, and what is kept for them? Plain values, for receipts and whoever sums them up.

A whole table is one for all units, a cache is each unit's own: what is kept is the greatest of the one, the sum of the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Used:
    """Lookups of one table: of one unit and batch, or summed up. A row of the stream whose key is NULL is no lookup."""

    hits: int = 0  # answered from what was kept; that the table has no such key is an answer
    misses: int = 0
    expired: int = 0  # of the misses: an answer was kept, and is void
    queries: int = 0  # to the database
    rows: int = 0  # of the table that are kept
    bytes: int = 0
    budget: int = 0
    version: int | None = None  # of a table that is kept whole; None: a cache of what was asked for


def total(units: Iterable[Used]) -> Used:
    """Of one table, over units."""
    found = Used()
    for used in units:
        fold = max if used.version is not None else int.__add__
        found = Used(
            found.hits + used.hits,
            found.misses + used.misses,
            found.expired + used.expired,
            found.queries + used.queries,
            fold(found.rows, used.rows),
            fold(found.bytes, used.bytes),
            fold(found.budget, used.budget),
            used.version if found.version is None else max(found.version, used.version or 0),
        )
    return found


def later(before: Used, batch: Used, now: Used) -> Used:
    """What was done so far and in this batch, what is kept now."""
    return replace(
        now,
        hits=before.hits + batch.hits,
        misses=before.misses + batch.misses,
        expired=before.expired + batch.expired,
        queries=before.queries + batch.queries,
    )
