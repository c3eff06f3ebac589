"""Which neighbouring segments share one sorted index? SPO-Join's mutable part (section 3.2), without a structure of its own.

    batches of 1 row    1 | 2 | 2 1 | 4 | 4 1 | 4 2 | 4 2 1 | 8        rows of the indexes after each

The paper inserts into a B+tree tuple by tuple, and merges it into a sealed run at last. Here a batch is a segment, whose index
is a sealed run from the start; what costs is that there are many small ones to probe. So indexes grow as a binary counter does,
and are sorted anew: in memory, and only of few rows, that costs less than probing them apart.
Law: the index of some segments is that of their rows, one behind the other. A pure function of the segments' sizes: every
process makes the same choice. Cost: O(log(rows / batch)) sorts of each row, as many indexes to probe.
"""

from collections.abc import Sequence

MOST = 1 << 16  # rows of an index of several segments: sorting them takes 20 ms


def shared(rows: Sequence[int], most: int = MOST) -> list[tuple[int, int]]:
    """For segments with so many rows [start, stop) of those that share an index, in order. O(segments)."""
    found: list[tuple[int, int, int]] = []
    for at, size in enumerate(rows):
        start, held = at, size
        while found and found[-1][2] <= held and found[-1][2] + held <= most:
            start, _, before = found.pop()
            held += before
        found.append((start, at + 1, held))
    return [(start, stop) for start, stop, _ in found]
