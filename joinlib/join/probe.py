"""New rows meet stored rows: tuples and one more side become longer tuples. Written once, used by every join."""

from collections.abc import Iterator

from joinlib.join.config import Bound
from joinlib.join.layout import Operator
from joinlib.join.match import same_keys, satisfying, within
from joinlib.join.rows import Stored, Tuples, flat
from joinlib.join.theta import candidates
from joinlib.state.manifest import ALWAYS
from joinlib.state.run import I32, I64, LiveRun, time_values
from joinlib.state.side import Side


class Prober:
    """Extends tuples by the sides of one operator."""

    def __init__(self, operator: Operator, sides: list[Side], pairs: int) -> None:
        self.operator, self.sides, self.pairs = operator, sides, pairs

    def extend(self, tuples: Tuples, bound: frozenset[int], side: int) -> Iterator[tuple[LiveRun, Tuples]]:
        """Each tuple with each stored row of `side` that matches it. `bound`: the sides already in the tuples."""
        op = self.operator
        bounds = self._bounds(bound, side)
        last = len(bound) + 1 == len(self.sides)
        for live in list(self.sides[side].runs):
            if not live.run.rows or self._apart(tuples, bounds, live, side):
                continue
            for positions, numbers, ends in self._candidates(tuples, live, side):
                longer = Tuples(*tuples.take(positions).parts, Stored(live, numbers, ends))
                if not op.exact:
                    longer = same_keys(longer, op.sides[min(bound)].keys, op.sides[side].keys)
                longer = within(longer, bounds)
                if last:
                    longer = satisfying(longer, op.predicate)
                if len(longer):
                    yield live, longer

    def _candidates(self, tuples: Tuples, live: LiveRun, side: int) -> Iterator[tuple[I32, I32, I64]]:
        if self.operator.index == "hash":
            return live.probe(tuples.hashes(), self.pairs)
        return candidates(self.operator, side, tuples, live, self.pairs)

    def _bounds(self, bound: frozenset[int], side: int) -> tuple[Bound, ...]:
        """The time bounds that can be checked once `side` is there; those of the first side alone wait for a second."""
        before = {n for i in bound for n in self.operator.sides[i].schema.names}
        own = set(self.operator.sides[side].schema.names)
        known = [(b, {b.left, b.right}) for b in self.operator.bounds]
        return tuple(b for b, names in known if names <= before | own and (names & own or len(bound) == 1))

    def _apart(self, tuples: Tuples, bounds: tuple[Bound, ...], live: LiveRun, side: int) -> bool:
        """Whether every row of the run lies outside the time bounds of every tuple: then it need not be searched."""
        config = self.operator.sides[side]
        own, names = config.time, config.schema.names
        for bound in bounds:
            other = bound.left if own == bound.right else bound.right
            if own not in (bound.left, bound.right) or other in names or live.run.high == ALWAYS:
                continue
            low, high = (bound.low_us, bound.high_us) if own == bound.right else _flip(bound)
            times = time_values(flat(tuples.column(other)))
            if low is not None and live.run.high < int(times.min()) + low:
                return True
            if high is not None and live.run.low > int(times.max()) + high:
                return True
        return False


def _flip(bound: Bound) -> tuple[int | None, int | None]:
    """The bound on left - right."""
    return (
        None if bound.high_us is None else -bound.high_us,
        None if bound.low_us is None else -bound.low_us,
    )
