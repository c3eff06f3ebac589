"""Computes how late the rows of a stage reach the next stage.

A row is emitted when the last of its parts arrives.

Let hi(y, z) be the most that event time z may exceed y in rows that match, and W the stage's watermark. The
part that arrived last is late by no more than late(z) for each of its times z: z >= W - late(z), so y >= W -
min over z of (hi(y, z) + late(z)). Which part arrives last is unknown, so the maximum over all parts counts.
A part without a bound to y may arrive any time after it.
"""

from collections.abc import Iterable, Mapping

from joinlib.expr.bound import Bound
from joinlib.plan.reach import closure


def forward(
    parts: Iterable[Iterable[str]], bounds: Iterable[Bound], late: Mapping[str, int]
) -> dict[str, int]:
    """Return how many µs each event time may be behind the watermark when its row is emitted.

    An event time that is missing from the result may be behind by any amount. `parts`: the event times of
    each input's rows; `late`: how many µs those may be behind as they arrive. This is for inner and semi
    joins, where all bounds hold for every row that is emitted. O(times^3).
    """
    reach = closure(bounds)
    times = [frozenset(part) & late.keys() for part in parts]
    found = {}
    for at, own in enumerate(times):
        others = [part for i, part in enumerate(times) if i != at]
        for y in own:
            delays = [[reach[y, z] + late[z] for z in part if (y, z) in reach] for part in others]
            if all(delays):
                found[y] = max([late[y], *map(min, delays)])
    return found
