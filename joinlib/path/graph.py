"""The join graph of inner joins over several keys, and paths through it; frozen and picklable.

    customer.custkey = orders.custkey AND orders.orderkey = lineitem.orderkey

    classes       0: {customer, orders}     1: {orders, lineitem}
    arrangements  customer by 0, orders by 0, orders by 1, lineitem by 1
    a path        of lineitem: orders by 1 | customer by 0        two legs, one exchange between them

A new row is joined with one input after the other (`Probe`). Each probe asks an *arrangement*: an input stored
by one key, which is a set of classes. Rows of an arrangement lie in the unit that the hash of this key names,
so consecutive probes by one key need no exchange: they are a *leg*.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

Key = tuple[int, ...]  # numbers of classes, ascending


@dataclass(frozen=True)
class JoinGraph:
    """Inputs are numbered from 0; a class says which of them have an expression that is equal in all."""

    inputs: int
    classes: tuple[frozenset[int], ...]

    def of(self, one: int) -> frozenset[int]:
        """Return the classes that have a member of this input."""
        return frozenset(number for number, members in enumerate(self.classes) if one in members)

    def held(self, bound: Collection[int]) -> frozenset[int]:
        """Return the classes whose value is known of tuples of these inputs."""
        return frozenset().union(*(self.of(one) for one in bound))

    @cached_property
    def connected(self) -> bool:
        """Whether a path reaches every input."""
        reached, more = frozenset[int](), frozenset([0])
        while more != reached:
            reached, more = more, more.union(*(self.classes[number] for number in self.held(more)))
        return len(reached) == self.inputs


@dataclass(frozen=True, order=True)
class Arrangement:
    """One input, stored and found by one key."""

    input: int
    key: Key


@dataclass(frozen=True, order=True)
class Probe:
    """Tuples that contain the input `asker` are joined with an arrangement, by its number (dpPick's pair <l, r>)."""

    asker: int
    arrangement: int


@dataclass(frozen=True)
class Path:
    """All probes of the new rows of one input, in order."""

    start: int
    probes: tuple[Probe, ...]

    def legs(self, arrangements: Sequence[Arrangement]) -> tuple[tuple[Probe, ...], ...]:
        """Return the probes that are made in one unit after the other."""
        by_key = groupby(self.probes, lambda probe: arrangements[probe.arrangement].key)
        return tuple(tuple(probes) for _, probes in by_key)

    def visits(self, arrangements: Sequence[Arrangement]) -> tuple[int, ...]:
        """Return the inputs in the order in which they are joined, the start first."""
        return (self.start, *(arrangements[probe.arrangement].input for probe in self.probes))


def possible_arrangements(graph: JoinGraph) -> tuple[Arrangement, ...]:
    """Return the arrangements that some path may want: each input by what it shares with another, and by each class.

    A key of all classes that two inputs share finds the fewest rows; a key of one class is found from more places.
    """
    found = set[Arrangement]()
    for one in range(graph.inputs):
        shared = [number for number in graph.of(one) if len(graph.classes[number]) > 1]
        found |= {Arrangement(one, (number,)) for number in shared}
        for other in range(graph.inputs):
            if other != one and (key := graph.of(one) & graph.of(other)):
                found.add(Arrangement(one, tuple(sorted(key))))
    return tuple(sorted(found))


def next_probes(
    graph: JoinGraph, arrangements: Sequence[Arrangement], bound: Collection[int], start: int
) -> Iterator[Probe]:
    """Yield the probes that tuples of these inputs can make: one for each arrangement whose key they hold.

    The asker is the bound input with most classes of the key: of equal ones the start, whose own key it is then,
    else the lowest.
    """
    for number, askers in askers_of(graph, arrangements, bound):
        yield Probe(start if start in askers else askers[0], number)


def askers_of(
    graph: JoinGraph, arrangements: Sequence[Arrangement], bound: Collection[int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each arrangement whose key tuples of these inputs hold, with the inputs that have most of its classes."""
    held = graph.held(bound)
    for number, arrangement in enumerate(arrangements):
        if arrangement.input not in bound and held.issuperset(arrangement.key):
            shares = {one: len(graph.of(one).intersection(arrangement.key)) for one in sorted(bound)}
            most = max(shares.values())
            yield number, tuple(one for one, share in shares.items() if share == most)


def undecided(graph: JoinGraph, arrangement: Arrangement, bound: Collection[int]) -> Key:
    """Return the classes that a probe by the arrangement's key leaves to be compared: they close a cycle."""
    shared = graph.held(bound) & graph.of(arrangement.input)
    return tuple(sorted(shared - set(arrangement.key)))


def every_path(graph: JoinGraph, arrangements: Sequence[Arrangement], start: int) -> Iterator[Path]:
    """Yield all paths of an input (dpPick, algorithm 4): there may be as many as (inputs - 1)! of them, and more."""

    def walk(bound: frozenset[int], done: tuple[Probe, ...]) -> Iterator[Path]:
        if len(bound) == graph.inputs:
            yield Path(start, done)
        for probe in next_probes(graph, arrangements, bound, start):
            yield from walk(bound | {arrangements[probe.arrangement].input}, (*done, probe))

    return walk(frozenset([start]), ())
