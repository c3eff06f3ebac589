"""Estimates the work and the state of joining a graph: by paths, or by stages that store what is between.

The estimate is the textbook's: values are spread evenly, and the values of the smaller side are among those of
the larger one. A set of inputs then joins to

    |B| = product of their rows / for each input but the first, the keys that it shares with those before it

Rows come in any order. So of the tuples of a set of inputs, a share of 1 in its size is found by the new rows
of one of them: those where its row came last.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from joinlib.path.cost import PathCosts
from joinlib.path.graph import Arrangement, JoinGraph, Key, Path

ROW_BYTES = 29  # of the hash of a stored row, and of its place in an index


@dataclass(frozen=True)
class Prices:
    """Seconds of one step of each kind, and of one more exchange of a batch."""

    query: float = 1.5e-7
    match: float = 1e-7
    exchange: float = 6e-7
    insert: float = 4e-7
    level: float = 0.02


@dataclass(frozen=True)
class PlanWork:
    """Totals, until all rows have come."""

    queries: float = 0.0
    matches: float = 0.0
    exchanged: float = 0.0  # tuples that go through an exchange, without those that come from inputs
    inserted: float = 0.0
    bytes: float = 0.0  # of the state
    levels: int = 1  # exchanges of a batch

    def __add__(self, other: "PlanWork") -> "PlanWork":
        """Add two parts of a plan; the levels of both run at the same time."""
        return PlanWork(
            self.queries + other.queries,
            self.matches + other.matches,
            self.exchanged + other.exchanged,
            self.inserted + other.inserted,
            self.bytes + other.bytes,
            max(self.levels, other.levels),
        )

    def seconds(self, prices: Prices, batches: float = 0.0) -> float:
        """Return the time of one core."""
        steps = self.queries * prices.query + self.matches * prices.match
        moved = self.exchanged * prices.exchange + self.inserted * prices.insert
        return steps + moved + batches * self.levels * prices.level


@dataclass(frozen=True)
class Sizes:
    """What is known of the inputs of a graph, or guessed."""

    graph: JoinGraph
    rows: tuple[float, ...]  # that are kept of each input
    widths: tuple[int, ...]  # bytes of a row
    distinct: tuple[tuple[float, ...], ...]  # by input and class; 0 where the class has no member there
    conditions: tuple[
        tuple[frozenset[int], float], ...
    ] = ()  # the share that one passes, of tuples of these inputs

    def keys(self, one: int, key: Key) -> float:
        """Return the number of different keys among the rows of an input.

        Values of several columns hang together: there are no more pairs than in the input with fewest of them.
        """
        members = [one]
        if len(key) > 1:
            members += [other for other in range(self.graph.inputs) if self.graph.of(other).issuperset(key)]
        return max(1.0, min(self._combined(member, key) for member in members))

    def _combined(self, one: int, key: Key) -> float:
        return min(self.rows[one], prod(self.distinct[one][c] for c in key))

    def tuples(self, bound: Collection[int]) -> float:
        """Return the number of tuples that a set of inputs joins to; it depends on the set alone."""
        of = frozenset(bound)
        if of not in self._found:
            passing = prod(share for inputs, share in self.conditions if inputs <= of)
            self._found[of] = self._tuples(of) * passing
        return self._found[of]

    @cached_property
    def _found(self) -> dict[frozenset[int], float]:
        return {}

    def _tuples(self, bound: Collection[int]) -> float:
        first, *left = sorted(bound)
        done, found = [first], self.rows[first]
        while left:
            held = self.graph.held(done)
            at = next((one for one in left if self.graph.of(one) & held), left[0])
            key = tuple(sorted(self.graph.of(at) & held))
            found *= self.rows[at]
            if key:
                found /= max(self.keys(at, key), self._values(done, key))
            left.remove(at)
            done.append(at)
        return found

    def _values(self, bound: Collection[int], key: Key) -> float:
        """Return the number of different keys among tuples of these inputs."""
        whole = [self.keys(one, key) for one in bound if self.graph.of(one).issuperset(key)]
        if whole:
            return min(whole)
        return prod(
            min(self.distinct[one][c] for one in self.graph.classes[c].intersection(bound)) for c in key
        )

    def width(self, bound: Collection[int]) -> int:
        """Return the bytes of a tuple."""
        return sum(self.widths[one] for one in bound)

    def costs(self, arrangements: Sequence[Arrangement], prices: Prices) -> PathCosts:
        """Return the costs of probes by these sizes, as dpPick needs them."""
        inputs = range(self.graph.inputs)
        rate = tuple(tuple(self._rate(one, a) for a in arrangements) for one in inputs)
        per_hit = tuple(self.rows[a.input] / self.keys(a.input, a.key) for a in arrangements)
        n, query = len(inputs), (prices.query,) * len(arrangements)
        return PathCosts((query,) * n, prices.match, rate, (per_hit,) * n, prices.exchange)

    def _rate(self, asker: int, asked: Arrangement) -> float:
        """Return γ: the share of the asker's keys that the arrangement has, too."""
        known = tuple(number for number in asked.key if self.distinct[asker][number])
        return min(1.0, self.keys(asked.input, asked.key) / self.keys(asker, known))


def merged_sizes(sizes: Sizes, parts: Sequence[frozenset[int]]) -> Sizes:
    """Return the sizes of a graph whose inputs are parts: sets of inputs that are joined before."""
    classes = sizes.graph.classes
    merged = tuple(frozenset(at for at, part in enumerate(parts) if part & members) for members in classes)
    distinct = tuple(
        tuple(
            min((sizes.distinct[one][c] for one in members & part), default=0.0)
            for c, members in enumerate(classes)
        )
        for part in parts
    )
    rows = tuple(map(sizes.tuples, parts))
    conditions = (
        (frozenset(at for at, part in enumerate(parts) if part & of), share) for of, share in sizes.conditions
    )
    between = tuple((of, share) for of, share in conditions if len(of) > 1)
    return Sizes(JoinGraph(len(parts), merged), rows, tuple(map(sizes.width, parts)), distinct, between)


def path_work(sizes: Sizes, arrangements: Sequence[Arrangement], paths: Sequence[Path]) -> PlanWork:
    """Return the work of paths: nothing is stored but the arrangements that they use."""
    used = {arrangements[probe.arrangement] for path in paths for probe in path.probes}
    stored = sum((_stored(sizes, [a.input], sizes.rows[a.input]) for a in sorted(used)), PlanWork())
    legs = max((len(path.legs(arrangements)) for path in paths), default=1)
    every = sum((_along(sizes, arrangements, path) for path in paths), stored)
    return replace(every, levels=legs)


def _along(sizes: Sizes, arrangements: Sequence[Arrangement], path: Path) -> PlanWork:
    bound, tuples, work = [path.start], sizes.rows[path.start], PlanWork()
    key: Key = arrangements[path.probes[0].arrangement].key if path.probes else ()
    for probe in path.probes:
        aim = arrangements[probe.arrangement]
        moved = tuples if aim.key != key else 0.0
        bound, key, asking = [*bound, aim.input], aim.key, tuples
        tuples = sizes.tuples(bound) / len(bound)
        work += PlanWork(queries=asking, matches=tuples, exchanged=moved)
    return work


def _stored(sizes: Sizes, bound: Collection[int], rows: float) -> PlanWork:
    return PlanWork(inserted=rows, bytes=rows * (sizes.width(bound) + ROW_BYTES))


@dataclass(frozen=True)
class StagePlan:
    """Stages: each joins what its parts find by one key; the result of a part that is a stage is stored."""

    parts: tuple["StagePlan | int", ...]
    work: PlanWork

    @property
    def inputs(self) -> frozenset[int]:
        return frozenset(one for part in self.parts for one in inputs_of(part))


def inputs_of(part: StagePlan | int) -> frozenset[int]:
    """Return the inputs that are joined in a part of a plan."""
    return frozenset([part]) if isinstance(part, int) else part.inputs


def staged(sizes: Sizes, parts: Sequence[StagePlan | int]) -> StagePlan:
    """Return the stage that joins these parts, which share a key, in any order of arrival."""
    work = PlanWork(
        levels=1 + max((part.work.levels for part in parts if isinstance(part, StagePlan)), default=0)
    )
    bound = [inputs_of(part) for part in parts]
    for part, own in zip(parts, bound, strict=True):
        rows = sizes.tuples(own)
        below = PlanWork() if isinstance(part, int) else part.work + PlanWork(exchanged=rows)
        work += below + _stored(sizes, own, rows)
    for last in range(len(parts)):  # the part whose tuple comes last asks all others, one after the other
        seen, tuples = bound[last], sizes.tuples(bound[last])
        for count, other in enumerate((b for at, b in enumerate(bound) if at != last), 2):
            seen, asking = seen | other, tuples
            tuples = sizes.tuples(seen) / count
            work += PlanWork(queries=asking, matches=tuples)
    return StagePlan(tuple(parts), work)
