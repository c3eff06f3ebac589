"""The engine's watermark, carried in band by the blocks and replayed with them.

Every map task sends every unit a *tick*: how many rows of an input it read and the highest event time among
them. A unit keeps the maximum for each input; the watermark is the minimum over the inputs of (maximum -
delay). Closed and idle inputs do not hold it back, and it never decreases. The watermark after batch n
decides lateness from batch n+1 on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from joinlib.model.time import ALWAYS, NEVER


@dataclass(frozen=True)
class Tick:
    """The progress of one input, as reported by one map task or by the source itself."""

    input: int
    highest: int = NEVER  # µs
    rows: int = 0  # rows read, late ones included
    bad: int = 0  # messages dropped because they could not be decoded
    idle: bool = False  # silent for so long that the watermark does not wait for it
    closed: bool = False  # no further rows will arrive


def advance(
    watermark: int,
    highest: Sequence[int],
    delays: Sequence[int],
    ticks: Sequence[Tick],
    timed: Sequence[bool],
) -> tuple[int, tuple[int, ...]]:
    """Return the watermark and the highest event time of each input after a batch's ticks, µs.

    timed: whether each input has an event time.
    """
    tops = list(highest)
    for tick in ticks:
        tops[tick.input] = max(tops[tick.input], tick.highest)
    closed = {t.input for t in ticks if t.closed}
    if len(closed) == len(tops):
        return ALWAYS, tuple(tops)
    waiting = closed | {t.input for t in ticks if t.idle}
    heard = [i for i in range(len(tops)) if timed[i] and i not in waiting]
    if not heard or any(tops[i] == NEVER for i in heard):
        return watermark, tuple(tops)
    return max(watermark, min(tops[i] - delays[i] for i in heard)), tuple(tops)


def horizon(watermark: int, hold_us: int | None) -> int:
    """Return the latest event time, µs, whose rows are no longer needed: t + hold < watermark.

    hold_us: how long rows are kept after their event time; None keeps them until all inputs are closed.
    The result is ALWAYS once all inputs are closed.
    """
    if watermark == ALWAYS:
        return ALWAYS
    if hold_us is None or watermark == NEVER:
        return NEVER
    return watermark - hold_us - 1
