"""Assigns each partition a preferred executor, again whenever executors
come or go; Spark gets it before a batch.

A unit that stays finds its indexes in place; one that moves is rebuilt from its segments (11 ms a MB). So the
placement is

    even     no executor has two partitions more than another
    lazy     of all even placements, one with the fewest moves
    stable   a placement does not change as long as the executors are the same

When P partitions become 2P, the units of p go to p and p + P: both have their home where p was. Two
partitions on executors 1 and 2 become four, and executor 3 has been added:

    at home   1 2 1 2
    stay      1 2 1 -    two for one of them, one for each of the others
    placed    1 2 1 3
"""

from collections import Counter
from collections.abc import Sequence


def placed(partitions: int, executors: Sequence[str], before: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the executor of each partition; () if there are no executors. O(partitions + moves · executors).

    `before`: the executor of each partition of the last batch, which may have had another number of
    partitions.
    """
    if not executors:
        return ()
    homes = [before[p % len(before)] for p in range(partitions)] if before else [""] * partitions
    found = _staying(homes, _room(partitions, executors, Counter(homes)))
    load = Counter(found)
    for partition, executor in enumerate(found):
        if not executor:
            found[partition] = least = min(executors, key=load.__getitem__)
            load[least] += 1
    return tuple(found)


def readers(warm: Sequence[str], ready: Sequence[str], wanted: int) -> list[str]:
    """Return the executors that read inputs; none: any may.

    A task on an executor that has not rehearsed takes seconds: while one may come at any moment, the others read.
    """
    return list(warm) if len(warm) < max(len(ready), wanted) else []


def _room(partitions: int, executors: Sequence[str], held: Counter[str]) -> dict[str, int]:
    """The partitions that may stay on each executor; a remainder goes to
    those that hold most, so that fewer move.
    """
    each, more = divmod(partitions, len(executors))
    order = sorted(executors, key=lambda executor: -held[executor])
    return {executor: each + (at < more) for at, executor in enumerate(order)}


def _staying(homes: Sequence[str], room: dict[str, int]) -> list[str]:
    """Keep the first partitions at each home that has room; "" for the others."""
    found = []
    for home in homes:
        stays = room.get(home, 0) > 0
        found.append(home if stays else "")
        if stays:
            room[home] -= 1
    return found
