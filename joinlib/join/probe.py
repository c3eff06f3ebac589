"""New rows meet stored rows: tuples and one more side become longer tuples. Written once, used by every join."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from joinlib.expr.bound import Bound
from joinlib.index.sealed import Asked
from joinlib.join.layout import Operator
from joinlib.join.match import same_keys, satisfying, within
from joinlib.join.order.watch import Asker, Watch
from joinlib.join.rows import Stored, Tuples, flat
from joinlib.state.manifest import ALWAYS
from joinlib.state.run import I32, I64, LiveRun, time_values
from joinlib.state.side import Side


class _Found(NamedTuple):
    """Pairs of a tuple, by its position, and a stored row; and the time bounds that some of them may break."""

    positions: I32
    stored: Stored
    undecided: tuple[Bound, ...]


class Prober:
    """Extends tuples by the sides of one operator. `watch` counts what it does, where that decides on the order."""

    def __init__(self, operator: Operator, sides: list[Side], pairs: int, watch: Watch | None = None) -> None:
        self.operator, self.sides, self.pairs, self.watch = operator, sides, pairs, watch

    def begin(self, side: int, rows: int) -> None:
        """What follows is asked for new rows of `side`."""
        if self.watch is not None:
            self.watch.begin(side, rows)

    def extend(
        self, tuples: Tuples, bound: frozenset[int], side: int, apart: bool = False
    ) -> Iterator[Tuples]:
        """Each tuple with each stored row of `side` that matches it. `bound`: the sides already in the tuples.

        `apart`: the stored rows of a chunk are of one run.
        """
        found = self._found(tuples, bound, side, apart)
        if self.watch is not None:
            found = self.watch.probing(found, side, len(tuples))
        last = len(bound) + 1 == len(self.sides)
        for longer in found:
            if last:
                longer = satisfying(longer, self.operator.residual)
            if len(longer):
                yield longer

    def _found(self, tuples: Tuples, bound: frozenset[int], side: int, apart: bool) -> Iterator[Tuples]:
        """As `extend`, before the predicate; with who asked behind each tuple, where that is counted."""
        op, most = self.operator, 0 if apart else self.pairs
        for positions, stored, undecided in _together(self._candidates(tuples, bound, side), most):
            asker = () if self.watch is None else (Asker(positions),)
            longer = Tuples(*tuples.each(positions), stored, *asker)
            if not op.exact:
                longer = same_keys(longer, op.sides[min(bound)].keys, op.sides[side].keys)
            if op.index == "hash":
                longer = within(longer, undecided)
            yield longer

    def _candidates(self, tuples: Tuples, bound: frozenset[int], side: int) -> "Iterator[_Found]":
        """What the index of each run finds."""
        op = self.operator
        bounds = self._bounds(bound, side)
        asked: Asked | None = None
        for live in list(self.sides[side].runs):
            undecided = self._undecided(tuples, bounds, live, side) if live.run.rows else None
            if undecided is None:
                continue
            if op.index == "hash":
                asked = asked or Asked(tuples.hashes())  # put in order once for all runs
                candidates = live.probe(asked, self.pairs)
            else:
                candidates = self._compared(tuples, live, side)
            if self.watch is not None:
                candidates = self.watch.searching(candidates)
            for positions, numbers, ends in candidates:
                yield _Found(positions, Stored(live, numbers, ends), undecided)

    def _compared(self, tuples: Tuples, live: LiveRun, side: int) -> Iterator[tuple[I32, I32, I64]]:
        from joinlib.join.theta import candidates  # most joins have an equality and need none

        return candidates(self.operator, side, tuples, live, self.sides[side].sorted, self.pairs)

    def _bounds(self, bound: frozenset[int], side: int) -> tuple[Bound, ...]:
        """The time bounds that can be checked once `side` is there; those of the first side alone wait for a second."""
        before = {n for i in bound for n in self.operator.sides[i].schema.names}
        own = set(self.operator.sides[side].schema.names)
        known = [(b, {b.left, b.right}) for b in self.operator.bounds]
        return tuple(b for b, names in known if names <= before | own and (names & own or len(bound) == 1))

    def _undecided(
        self, tuples: Tuples, bounds: tuple[Bound, ...], live: LiveRun, side: int
    ) -> tuple[Bound, ...] | None:
        """The bounds that some of the run's rows may break: others need no check (BiStream, section 3.3).

        None: every row of the run lies outside the bounds of every tuple, so it need not be searched.
        """
        config = self.operator.sides[side]
        own, names, left = config.time, config.schema.names, []
        for bound in bounds:
            other = bound.left if own == bound.right else bound.right
            left.append(bound)
            if own not in (bound.left, bound.right) or other in names or live.run.high == ALWAYS:
                continue
            own_less_other = bound if own == bound.right else bound.turned
            low, high = own_less_other.low_us, own_less_other.high_us
            times = time_values(flat(tuples.column(other)))
            first, last = int(times.min()), int(times.max())
            if low is not None and live.run.high < first + low:
                return None
            if high is not None and live.run.low > last + high:
                return None
            if (low is None or live.run.low >= last + low) and (
                high is None or live.run.high <= first + high
            ):
                left.pop()
        return tuple(left)


def _together(found: Iterator[_Found], most: int) -> Iterator[_Found]:
    """Those of several runs as one, of `most` pairs at most.

    A chunk costs as much for ten pairs as for a thousand, and each asks the next input by itself: r runs of each input would
    become r chunks, r² and r³.
    """
    held: list[_Found] = []
    size = 0
    for one in found:
        if held and size + len(one.positions) > most:
            yield _joined(held)
            held, size = [], 0
        held.append(one)
        size += len(one.positions)
        if size >= most:  # nobody looks for more before these are taken
            yield _joined(held)
            held, size = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[_Found]) -> _Found:
    if len(held) == 1:
        return held[0]
    positions, stored, undecided = zip(*held, strict=True)
    bounds = dict.fromkeys(bound for some in undecided for bound in some)
    return _Found(np.concatenate(positions), Stored.together(stored), tuple(bounds))
