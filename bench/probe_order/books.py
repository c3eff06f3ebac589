"""What do the books cost? Seconds that go into counting, smoothing, searching and keeping, beside those of the joins.

With and without them, a run differs by less than two runs of one kind on a busy machine. So their own code is timed, piece by
piece, and the clock's own time counts among theirs. All are seconds of the wall clock, because reading CPU time
costs ten times as much; neighbours disturb both sides of the share alike.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import orjson

from joinlib.join.order.orders import Orders
from joinlib.join.order.watch import Asker, Candidates, Watch
from joinlib.join.rows import Positions, Rows, Tuples
from joinlib.join.unit import orders_of
from joinlib.state.run import LiveRun

T = TypeVar("T")


class Clock:
    """Seconds so far."""

    seconds = 0.0

    def over(self, wrap: Callable[[Iterator[T]], Iterator[T]], inner: Iterator[T]) -> Iterator[T]:
        """The wrapped iterator; what it takes beyond the one within is counted."""
        within = 0.0

        def timed() -> Iterator[T]:
            nonlocal within
            began = time.perf_counter()
            for item in inner:
                within += time.perf_counter() - began
                yield item
                began = time.perf_counter()
            within += time.perf_counter() - began

        outer, began, before = wrap(timed()), time.perf_counter(), 0.0
        for item in outer:
            self.seconds += time.perf_counter() - began - (within - before)
            before = within
            yield item
            began = time.perf_counter()
        self.seconds += time.perf_counter() - began - (within - before)

    def call(self, function: Callable[..., T], *args: Any) -> T:
        began = time.perf_counter()
        try:
            return function(*args)
        finally:
            self.seconds += time.perf_counter() - began


CLOCK = Clock()


class TimedWatch(Watch):
    def searching(self, candidates: Candidates) -> Candidates:
        return CLOCK.over(super().searching, candidates)

    def probing(
        self, found: Iterator[tuple[LiveRun, Tuples]], side: int, asked: int
    ) -> Iterator[tuple[LiveRun, Tuples]]:
        return CLOCK.over(lambda inner: super(TimedWatch, self).probing(inner, side, asked), found)


class TimedAsker(Asker):
    def take(self, positions: Positions) -> Rows:
        return CLOCK.call(lambda: TimedAsker(self.positions[positions]))


class TimedOrders(Orders):
    def after(self, *args: Any) -> Orders:
        after = CLOCK.call(super().after, *args)
        return TimedOrders(**vars(after))

    def plain(self) -> dict[str, Any]:
        plain = CLOCK.call(super().plain)
        CLOCK.call(lambda: orjson.loads(orjson.dumps(plain)))  # its part of the manifest, written and read
        return plain


def timed_orders(*args: Any) -> Orders:
    """In place of `orders_of`."""
    return TimedOrders(**vars(CLOCK.call(orders_of, *args)))
