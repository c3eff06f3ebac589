"""Extends tuples by the matching stored rows of one more side; every join uses it."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from joinlib.apart import KeepFailed
from joinlib.arrays import I32, I64
from joinlib.chunks import chunked
from joinlib.expr.bound import Bound
from joinlib.index.sealed import HashProbes
from joinlib.join.match import same_keys, satisfying, within
from joinlib.join.order.watch import Asker, Watch
from joinlib.join.rows import Stored, Tuples, flat
from joinlib.model.operator import Operator
from joinlib.model.time import ALWAYS
from joinlib.model.tuning import Tuning
from joinlib.state.run import LiveRun, Mask, time_values
from joinlib.state.side import Side


class _Found(NamedTuple):
    """Pairs of a tuple, by its position, and a stored row; and the time bounds that some pairs may break."""

    positions: I32
    stored: Stored
    undecided: tuple[Bound, ...]


class Prober:
    """Extends tuples by the sides of one operator.

    watch: counts probes, matches and seconds where these decide the probe order; else None.
    before: whether the sides are probed as they were before the last batch.
    failed: takes pairs for which the condition fails, which are then no matches; None: they are an error.
    """

    def __init__(
        self,
        operator: Operator,
        sides: list[Side],
        tuning: Tuning,
        watch: Watch | None = None,
        before: bool = False,
        pair: tuple[int, int] | None = None,
        failed: KeepFailed | None = None,
    ) -> None:
        self.operator, self.sides, self.pairs, self.watch = operator, sides, tuning.probe_pairs, watch
        self._before, self._pair, self._failed = before, pair, failed
        self._hash_is_key = operator.hash_is_key and tuning.hash_bits == 64

    def pieces(self, side: int, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        """Return new rows of `side` in the pieces that probe one after the other, so that some are counted."""
        return [rows] if self.watch is None else self.watch.pieces(side, rows)

    @property
    def _counting(self) -> Watch | None:
        return self.watch if self.watch is not None and self.watch.counting else None

    def extend(
        self, tuples: Tuples, bound: frozenset[int], side: int, apart: bool = False
    ) -> Iterator[Tuples]:
        """Yield each tuple joined with each stored row of `side` that matches it, in chunks of bounded size.

        bound: the sides that the tuples already contain.
        apart: keep chunks apart, so that the stored rows of a chunk belong to one run.
        """
        found = self._found(tuples, bound, side, apart)
        if (watch := self._counting) is not None:
            found = watch.probing(found, self._pair or (None, side), len(tuples))
        last = len(bound) + 1 == len(self.sides)
        for longer in found:
            if last:
                longer = satisfying(longer, self.operator.residual, self._failed)
            if len(longer):
                yield longer

    def _found(self, tuples: Tuples, bound: frozenset[int], side: int, apart: bool) -> Iterator[Tuples]:
        """Do the work of `extend` up to the residual predicate.

        If a watch counts, each tuple carries an `Asker` that says which tuple it was extended from.
        """
        op, most = self.operator, 0 if apart else self.pairs
        for positions, stored, undecided in map(
            _joined, chunked(self._candidates(tuples, bound, side), _pairs, most)
        ):
            asker = () if self._counting is None else (Asker(positions),)
            longer = Tuples(*tuples.each(positions), stored, *asker)
            if not self._hash_is_key:
                longer = same_keys(longer, op.sides[min(bound)].keys, op.sides[side].keys)
            yield within(longer, undecided)

    def _candidates(self, tuples: Tuples, bound: frozenset[int], side: int) -> "Iterator[_Found]":
        """Yield the pairs that the index of each run finds."""
        op = self.operator
        bounds = self._bounds(bound, side)
        asked: HashProbes | None = None
        for live in list(self.sides[side].searched):
            undecided = self._undecided(tuples, bounds, live, side) if live.run.rows else None
            if undecided is None:
                continue
            if op.index == "hash":
                asked = asked or HashProbes(tuples.hashes())  # sorted once for all runs
                candidates = live.probe(asked, self.pairs)
            else:
                candidates = self._compared(tuples, live, side)
            if (watch := self._counting) is not None:
                candidates = watch.searching(candidates)
            there = self.sides[side].version(live, self._before)
            for positions, numbers, ends in _there(there, candidates) if there else candidates:
                yield _Found(positions, Stored(live, numbers, ends), undecided)

    def _compared(self, tuples: Tuples, live: LiveRun, side: int) -> Iterator[tuple[I32, I32, I64]]:
        from joinlib.join.theta import candidates  # imported here: joins by equality never need it

        return candidates(self.operator, side, tuples, live, self.sides[side].sorted, self.pairs)

    def _bounds(self, bound: frozenset[int], side: int) -> tuple[Bound, ...]:
        """Return the time bounds that can be checked once `side` is joined.

        Bounds within the first side alone are checked with the second.
        """
        before = {n for i in bound for n in self.operator.sides[i].schema.names}
        own = set(self.operator.sides[side].schema.names)
        known = [(b, {b.left, b.right}) for b in self.operator.bounds]
        return tuple(b for b, names in known if names <= before | own and (names & own or len(bound) == 1))

    def _undecided(
        self, tuples: Tuples, bounds: tuple[Bound, ...], live: LiveRun, side: int
    ) -> tuple[Bound, ...] | None:
        """Return the bounds that some of the run's rows may violate; the rest hold (BiStream, section 3.3).

        None: every row of the run violates a bound with every tuple, so the run need not be searched.
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


def _there(
    there: Callable[[I32], Mask], found: Iterator[tuple[I32, I32, I64]]
) -> Iterator[tuple[I32, I32, I64]]:
    """Leave out pairs with rows that are not there."""
    for positions, rows, ends in found:
        kept = there(rows)
        counts = np.concatenate([[0], np.cumsum(kept)])
        yield positions[kept], rows[kept], counts[ends]


def _pairs(found: _Found) -> int:
    return len(found.positions)


def _joined(held: list[_Found]) -> _Found:
    if len(held) == 1:
        return held[0]
    positions, stored, undecided = zip(*held, strict=True)
    bounds = dict.fromkeys(bound for some in undecided for bound in some)
    return _Found(np.concatenate(positions), Stored.together(stored), tuple(bounds))
