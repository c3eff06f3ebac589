"""A path made ready to run: what each probe decides, which version of the state it sees, and what tuples carry on.

    lineitem  home orderkey │ orders after, deciding o.date < l.date │ carry custkey, price │ customer after

Order-consistent (UMJoin, equations 3 to 6): the new rows of input i see the inputs before i as they are after
the batch, and those behind i as they were before it. So of rows that match and come in one batch, only those of
the last input find all others.

Laws: each condition is decided once, by the first probe after which its columns are there; one that may fail,
such as a division, by the last probe of all. Each class in which two inputs meet is compared once, in the key
of a probe or besides it. A tuple carries just what is read later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from joinlib.path.graph import Arrangement, JoinGraph, Key, Path, Probe, undecided


@dataclass(frozen=True)
class JoinCondition:
    """A condition besides the classes: the inputs and the columns that it reads."""

    inputs: frozenset[int]
    columns: frozenset[str]
    fails: bool = False  # it may raise an error, so it is asked of whole tuples only


@dataclass(frozen=True)
class JoinColumns:
    """Which columns are read, by name: names tell inputs apart."""

    inputs: tuple[frozenset[str], ...]  # all columns of each input
    members: tuple[tuple[str | None, ...], ...]  # by input and class: the column that is its member
    selected: frozenset[str]  # read of the result
    conditions: tuple[JoinCondition, ...] = ()


@dataclass(frozen=True)
class RouteHop:
    """One probe of a route."""

    probe: Probe
    after: bool  # it sees the arrangement as it is after the batch; False: as it was before
    equal: Key  # classes to compare besides the key
    decided: tuple[int, ...]  # conditions, by number


@dataclass(frozen=True)
class RouteLeg:
    """The probes of one unit. Tuples come by `key`, and leave with the columns `carried`, in the order of names."""

    key: Key
    hops: tuple[RouteHop, ...]
    carried: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """A path from the unit where the rows come in; its first leg may be without a probe."""

    start: int
    legs: tuple[RouteLeg, ...]


def route(
    graph: JoinGraph,
    arrangements: Sequence[Arrangement],
    path: Path,
    home: Key,
    read: JoinColumns,
    longest: int | None = None,
) -> Route:
    """Return the route of a path for rows that come in by the key `home`.

    longest: the legs of the longest route. If this one has fewer, its rows wait: the first leg makes no probe.
    """
    hops = _hops(graph, arrangements, path, read)
    split = [(arrangements[leg[0].arrangement].key, len(leg)) for leg in path.legs(arrangements)]
    if not split or split[0][0] != home or (longest is not None and len(split) < longest):
        split = [(home, 0), *split]
    legs, done = [], 0
    for key, count in split:
        own, rest = hops[done : done + count], hops[done + count :]
        done += count
        bound = path.visits(arrangements)[: done + 1]
        legs.append(RouteLeg(key, tuple(own), _carried(graph, arrangements, bound, rest, read)))
    return Route(path.start, tuple(legs))


def _hops(
    graph: JoinGraph, arrangements: Sequence[Arrangement], path: Path, read: JoinColumns
) -> list[RouteHop]:
    hops: list[RouteHop] = []
    bound, open_ones = frozenset([path.start]), list(range(len(read.conditions)))
    for at, probe in enumerate(path.probes, 1):
        aim = arrangements[probe.arrangement]
        equal, bound = undecided(graph, aim, bound), bound | {aim.input}
        last = at == len(path.probes)
        now = [c for c in open_ones if last or _decidable(read.conditions[c], bound)]
        open_ones = [c for c in open_ones if c not in now]
        hops.append(RouteHop(probe, aim.input < path.start, equal, tuple(now)))
    return hops


def _decidable(condition: JoinCondition, bound: frozenset[int]) -> bool:
    return condition.inputs <= bound and not condition.fails


def _carried(
    graph: JoinGraph,
    arrangements: Sequence[Arrangement],
    bound: Sequence[int],
    rest: Iterable[RouteHop],
    read: JoinColumns,
) -> tuple[str, ...]:
    """Return the columns of bound inputs that are read later; of each class that is, the first bound member."""
    rest = list(rest)
    later = set(read.selected)
    for hop in rest:
        later = later.union(*(read.conditions[c].columns for c in hop.decided))
    own = frozenset().union(*(read.inputs[one] for one in bound))
    classes = set(chain.from_iterable((*arrangements[h.probe.arrangement].key, *h.equal) for h in rest))
    members = {member_of(graph, number, bound, read) for number in classes & graph.held(bound)}
    return tuple(sorted((later & own) | members))


def member_of(graph: JoinGraph, number: int, bound: Iterable[int], read: JoinColumns) -> str:
    """Return the column in which tuples of these inputs have the value of a class."""
    first = min(graph.classes[number].intersection(bound))
    name = read.members[first][number]
    assert name is not None, "an input of a class has a member of it"
    return name
