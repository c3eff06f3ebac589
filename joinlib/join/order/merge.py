"""One n-way join or a chain of binary ones? What each does for a key that has so many rows in every input (equations 4 to 8).

Rows come in any order, so of j + 1 that match each is the last one equally often. The n-way join asks for what it found before
anew with every row; a chain stores it.

    4 inputs, 1 row each       n-way: 7.3 queries, 4.3 matches         chain: 6 queries, 3 matches, 2 rows stored
    4 inputs, 4 rows each             133          373                        124        336        80
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Of one key, until all of its rows have come."""

    queries: float
    matches: float
    stored: int = 0  # intermediate rows


def merged(inputs: int, rows: int = 1) -> Work:
    """A row's j-th query is made for each tuple of j that has all others already."""
    each = inputs * rows
    queries = sum(rows ** (j - 1) / j for j in range(1, inputs))
    matches = sum(rows**j / (j + 1) for j in range(1, inputs))
    return Work(each * queries, each * matches)


def chained(inputs: int, rows: int = 1) -> Work:
    """Join j has tuples of j inputs on one side and rows of one on the other; all but the last one's results are stored."""
    joins = range(1, inputs)
    return Work(
        sum(rows**j + rows for j in joins),
        sum(rows ** (j + 1) for j in joins),
        sum(rows ** (j + 1) for j in joins[:-1]),
    )
