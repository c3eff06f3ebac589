"""Which executor should each partition run on? Decided anew when executors come or go; Spark is told before a batch.

A unit that stays finds its indexes where they were; one that moves is rebuilt from its segments (11 ms a MB). So:

    even     no executor has two partitions more than another
    lazy     of all even placements one with the fewest moves
    stable   what was placed is placed so again as long as the executors are the same

Where P partitions become 2P, units of p go to p and p + P: both are at home where p was. Two partitions on executors 1 and 2
become four, and 3 has come:

    at home   1 2 1 2
    stay      1 2 1 -    two for one of them, one for each of the others
    placed    1 2 1 3
"""

from collections import Counter
from collections.abc import Sequence


def placed(partitions: int, executors: Sequence[str], before: Sequence[str] = ()) -> tuple[str, ...]:
    """The executor of each partition; () if there is none. `before`: of each partition of the last batch, however many it had.

    Cost: O(partitions + moves · executors).
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


def _room(partitions: int, executors: Sequence[str], held: Counter[str]) -> dict[str, int]:
    """Partitions that may stay on each executor. Where it does not divide, one more for those that hold most: fewer move."""
    each, more = divmod(partitions, len(executors))
    order = sorted(executors, key=lambda executor: -held[executor])
    return {executor: each + (at < more) for at, executor in enumerate(order)}


def _staying(homes: Sequence[str], room: dict[str, int]) -> list[str]:
    """The first partitions at each home for which it has room; "" for the others."""
    found = []
    for home in homes:
        stays = room.get(home, 0) > 0
        found.append(home if stays else "")
        if stays:
            room[home] -= 1
    return found
