"""Groups many small pieces of work into few chunks, which cost as much for ten rows as for a thousand."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def chunked(items: Iterable[T], size: Callable[[T], int], limit: int) -> Iterator[list[T]]:
    """Yield groups of neighbours whose sizes add up to at most `limit`; a larger item is a group of its own.

    A group is yielded as soon as it is full, before the next item is consumed.

    >>> list(chunked([1, 2, 3, 4, 9], int, 5))
    [[1, 2], [3], [4], [9]]
    """
    held: list[T] = []
    total = 0
    for item in items:
        own = size(item)
        if held and total + own > limit:
            yield held
            held, total = [], 0
        held.append(item)
        total += own
        if total >= limit:
            yield held
            held, total = [], 0
    if held:
        yield held
