"""The heap of a JVM, as `Heaps.java` tells it."""

from typing import NamedTuple


class Heap(NamedTuple):
    """The heap of a JVM, bytes, and how long it was collected since the JVM started."""

    used: int  # garbage included
    limit: int
    collected_s: float


def heap(said: str) -> Heap:
    """Return what a JVM says of its own."""
    used, limit, milliseconds = map(int, said.split())
    return Heap(used, limit, milliseconds / 1000)


def heaps(said: str) -> dict[str, Heap]:
    """Return what the driver's JVM says of those of its executors, by their ids."""
    lines = (line.partition(" ") for line in said.splitlines())
    return {executor: heap(rest) for executor, _, rest in lines}
