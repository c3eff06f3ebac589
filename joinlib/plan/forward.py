"""How late do the rows of a stage reach the next? A row comes out when the last of its parts comes in.

Let hi(y, z) be the most that event time z may exceed y in rows that match, and W the stage's watermark. The part that came
last is late by no more than late(z) for each of its times z: z >= W - late(z), so y >= W - min over z of (hi(y, z) + late(z)).
Which part that is is not known: the greatest of all parts counts. A part without a bound to y may come any time after it.
"""

from collections.abc import Iterable, Mapping

from joinlib.expr.bound import Bound
from joinlib.join.reach import closure


def forward(
    parts: Iterable[Iterable[str]], bounds: Iterable[Bound], late: Mapping[str, int]
) -> dict[str, int]:
    """How many µs each event time may be behind the watermark when its row comes out; one that is not named: any time.

    `parts`: the event times of each input's rows; `late`: how far behind those may be as they come in. For inner and semi
    joins: all their bounds hold of every row that comes out. O(times^3).
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
