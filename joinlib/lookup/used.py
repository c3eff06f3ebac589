"""Counts the lookups of one table and what is kept for them, as plain values for receipts and their sums.

All units share a table that is kept whole, but each unit has a cache of its own: what is kept is the maximum
for the former and the sum for the latter.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Used:
    """The lookups of one table, in one unit and batch or summed up.

    A stream row with a NULL key is not a lookup.
    """

    hits: int = 0  # answered from what is kept; "the table has no such key" is an answer
    misses: int = 0
    expired: int = 0  # misses for which there was an answer that had expired
    queries: int = 0  # to the database
    rows: int = 0  # rows of the table that are kept
    bytes: int = 0
    budget: int = 0
    version: int | None = None  # of a table that is kept whole; None: an incremental cache
    table: str = ""  # its alias, unique in the query


def total(units: Iterable[Used]) -> Used:
    """Sum up one table over units."""
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
            used.table,
        )
    return found


def later(before: Used, batch: Used, now: Used) -> Used:
    """Add a batch's counts to those before it; what is kept is that of `now`."""
    return replace(
        now,
        hits=before.hits + batch.hits,
        misses=before.misses + batch.misses,
        expired=before.expired + batch.expired,
        queries=before.queries + batch.queries,
    )
