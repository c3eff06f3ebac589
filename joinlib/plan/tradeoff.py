"""Compares one n-way join with a chain of binary joins, for a key with a number of rows in every input
(equations 4 to 8).

Rows arrive in any order, so of j + 1 rows that match, each is equally often the last. The n-way join repeats
its earlier probes for every new row; a chain stores their results.

    4 inputs, 1 row each      n-way: 7.3 queries, 4.3 matches     chain: 6 queries, 3 matches, 2 rows stored
    4 inputs, 4 rows each            133          373                    124        336        80
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class JoinWork:
    """The work for one key until all of its rows have arrived."""

    queries: float
    matches: float
    stored: int = 0  # intermediate rows


def merged(inputs: int, rows: int = 1) -> JoinWork:
    """The work of an n-way join: a row makes its j-th query for each tuple of j rows already there."""
    each = inputs * rows
    queries = sum(rows ** (j - 1) / j for j in range(1, inputs))
    matches = sum(rows**j / (j + 1) for j in range(1, inputs))
    return JoinWork(each * queries, each * matches)


def chained(inputs: int, rows: int = 1) -> JoinWork:
    """The work of a chain: join j matches tuples of j inputs with rows of
    one; all results but the last are stored.
    """
    joins = range(1, inputs)
    return JoinWork(
        sum(rows**j + rows for j in joins),
        sum(rows ** (j + 1) for j in joins),
        sum(rows ** (j + 1) for j in joins[:-1]),
    )
