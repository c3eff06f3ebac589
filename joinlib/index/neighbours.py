"""Decides which neighbouring segments share one sorted index, in place of SPO-Join's mutable part (section
3.2).

    batches of 1 row    1 | 2 | 2 1 | 4 | 4 1 | 4 2 | 4 2 1 | 8        rows of the indexes after each

The paper inserts tuples into a B+tree one by one, and finally merges it into a sealed run. Here a batch is
a segment, whose index is a sealed run from the start; the cost is that many small indexes are probed. So
indexes grow like a binary counter and are sorted again: in memory, and for few rows only, this costs less
than probing them separately.

Law: the index of several segments is that of their concatenated rows. A pure function of the segments'
sizes: every process makes the same choice. Cost: O(log(rows / batch)) sorts of each row, and as many
indexes to probe.
"""

from collections.abc import Sequence

MOST = 1 << 16  # maximum rows of an index of several segments: sorting them takes 20 ms


def shared(rows: Sequence[int], most: int = MOST) -> list[tuple[int, int]]:
    """Return the ranges [start, stop) of segments that share an index, in order. O(segments).

    rows: the number of rows of each segment. most: the maximum number of rows that share an index.
    """
    found: list[tuple[int, int, int]] = []
    for at, size in enumerate(rows):
        start, held = at, size
        while found and found[-1][2] <= held and found[-1][2] + held <= most:
            start, _, before = found.pop()
            held += before
        found.append((start, at + 1, held))
    return [(start, stop) for start, stop, _ in found]
