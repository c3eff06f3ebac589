"""How far has time come? Our own watermark, carried in band by the blocks and replayed with them.

Every map task sends every unit a *tick*: how many rows of an input it read and the highest event time among them. A unit
keeps the maximum for each input; the watermark is the minimum over the inputs of (maximum - delay). Closed inputs and
inputs said to be idle do not hold it back; it never goes back. The watermark after batch n decides lateness from n+1 on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from joinlib.state.manifest import ALWAYS, NEVER


@dataclass(frozen=True)
class Tick:
    """What one map task, or the source itself, says of one input."""

    input: int
    highest: int = NEVER  # µs
    rows: int = 0  # read, before lateness
    bad: int = 0  # messages left out, since they could not be decoded
    idle: bool = False  # silent for so long that nobody should wait for it
    closed: bool = False  # nothing more will ever come


def advance(
    watermark: int,
    highest: Sequence[int],
    delays: Sequence[int],
    ticks: Sequence[Tick],
    timed: Sequence[bool],
) -> tuple[int, tuple[int, ...]]:
    """The watermark and the highest event times after a batch's ticks. `timed`: which inputs have an event time."""
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
    """The latest event time whose rows nobody needs any more: t + hold < watermark. ALWAYS once all inputs are closed."""
    if watermark == ALWAYS:
        return ALWAYS
    if hold_us is None or watermark == NEVER:
        return NEVER
    return watermark - hold_us - 1
