"""The plans that are considered for inner joins by several keys: paths, and stages in several orders.

Paths of more inputs than MOST_LEFT_OUT are not looked at unless they are asked for: more than is needed is stored then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from joinlib.model.order import Alternative, ExpectedPart, Shape, StageOrder
from joinlib.model.pathorder import PathOrder
from joinlib.path.choice import BYTE, MOST_LEFT_OUT, Allowed, PathPlan, by_paths, by_stages, price
from joinlib.path.estimate import ROW_BYTES, PlanWork, Prices, Sizes, StagePlan, inputs_of, path_work, staged
from joinlib.path.graph import JoinGraph, Key
from joinlib.plan.reach import closure
from joinlib.sql.bounds import time_bounds
from joinlib.sql.graph import inputs
from joinlib.sql.order import InnerGroup

PATHS, STAGES = "paths", "cheapest stages"
_ROWS = 1e6  # of an input of which nothing is known
_WIDTH = 60


def cheapest_plan(sizes: Sizes, byte: float = BYTE) -> PathPlan | None:
    """Return the arrangements and paths that cost least."""
    return by_paths(sizes, Prices(), byte=byte)


def paths_of(
    group: InnerGroup, why: str, sizes: Sizes | None = None, byte: float = BYTE
) -> StageOrder | None:
    """Return the paths of a group, if there are any; where nothing is known of its inputs, all are alike."""
    graph = group.known.graph
    plan = None if one_key(graph) else cheapest_plan(_alike(graph) if sizes is None else sizes, byte)
    return None if plan is None else as_paths(group, plan, why)


def one_key(graph: JoinGraph) -> bool:
    """Return whether all inputs share a key: an outer join below one of them kept them apart, not the keys."""
    return any(len(having) == graph.inputs for having in graph.classes)


def as_paths(group: InnerGroup, plan: PathPlan, why: str) -> StageOrder:
    """Return the decision for some paths."""
    return StageOrder(group.names, why, paths=PathOrder(group.names, group.known.graph, plan))


def _alike(graph: JoinGraph) -> Sizes:
    every = range(graph.inputs)
    distinct = tuple(tuple(_ROWS if one in c else 0.0 for c in graph.classes) for one in every)
    return Sizes(graph, (_ROWS,) * graph.inputs, (_WIDTH,) * graph.inputs, distinct)


@dataclass(frozen=True)
class ConsideredPlans:
    """The plans of a group of which something is known. byte: the seconds that a byte of state is worth."""

    group: InnerGroup
    sizes: Sizes
    byte: float

    def price(self, work: PlanWork) -> float:
        """Return time and state as one figure, without the results: every plan finds them."""
        whole = self.sizes.tuples(range(self.sizes.graph.inputs))
        return price(work, Prices(), self.byte) - Prices().match * whole

    def plan(self, shape: Shape) -> StagePlan:
        """Return the stages of a shape."""
        names = self.group.names
        return staged(self.sizes, [names.index(p) if isinstance(p, str) else self.plan(p) for p in shape])

    def shape(self, plan: StagePlan | int) -> Shape:
        """Return the shape of stages."""
        if isinstance(plan, int):
            return self.group.names[plan]
        return self.group.ordered(tuple(self.shape(part) for part in plan.parts))

    @cached_property
    def text(self) -> StagePlan:
        """The stages in the order of the text."""
        return self.plan(self.group.text)

    @cached_property
    def stages(self) -> StagePlan | None:
        """The cheapest stages."""
        return by_stages(self.sizes, Prices(), self.byte, _bounded(self.group))

    @cached_property
    def paths(self) -> PathPlan | None:
        """The cheapest paths, if there are any, and few enough inputs."""
        graph = self.sizes.graph
        few = graph.inputs <= MOST_LEFT_OUT and not one_key(graph)
        return cheapest_plan(self.sizes, self.byte) if few else None

    def told(self, order: StageOrder) -> StageOrder:
        """Return an order with what is expected of it, and of others."""
        own = None if order.paths is None else order.paths.plan
        parts = () if own else tuple(self._parts(order.shape))
        return replace(order, parts=parts, alternatives=tuple(self._alternatives(own)))

    def _parts(self, shape: Shape) -> Iterator[ExpectedPart]:
        """Yield what the stages of a shape store, those of earlier stages first."""
        for part in () if isinstance(shape, str) else shape:
            yield from self._parts(part)
            plan = self.group.names.index(part) if isinstance(part, str) else self.plan(part)
            of = inputs_of(plan)
            rows = self.sizes.tuples(of)
            yield ExpectedPart(part, rows, rows * (self.sizes.width(of) + ROW_BYTES))

    def _alternatives(self, taken: PathPlan | None) -> Iterator[Alternative]:
        """Yield the plans that were considered. taken: the paths that were."""
        if (paths := taken or self.paths) is not None:
            work = path_work(self.sizes, paths.arrangements, paths.paths)
            stored = tuple((self.group.names[a.input], self._key(a.key)) for a in paths.arrangements)
            yield replace(_expected(PATHS, self.group.names, work), arrangements=stored)
        if self.stages is not None:
            yield _expected(STAGES, self.shape(self.stages), self.stages.work)
        yield _expected("order of the text", self.shape(self.text), self.text.work)
        large = self.plan(_by_large_keys(self.group))
        yield _expected("as many inputs as one key has", self.shape(large), large.work)

    def _key(self, key: Key) -> str:
        """Name each class by its first member that is a column."""
        every = [[*self.group.known.classes[number].members.values()] for number in key]
        named = (next((v for v in values if v.column is not None), values[0]) for values in every)
        return ", ".join((value.column or "").partition(".")[2] or value.sql for value in named)


def _expected(name: str, shape: Shape, work: PlanWork) -> Alternative:
    return Alternative(name, shape, work.seconds(Prices()), work.bytes, work.levels)


def _by_large_keys(group: InnerGroup) -> Shape:
    """Join by the key that most parts have, again and again."""
    graph = group.known.graph
    parts: list[tuple[Shape, frozenset[int]]] = [(n, graph.of(at)) for at, n in enumerate(group.names)]
    while len(parts) > 1:
        met: list[Sequence[tuple[Shape, frozenset[int]]]] = [
            [part for part in parts if number in part[1]] for number in range(len(graph.classes))
        ]
        most = max(met, key=len)
        joined = tuple(shape for shape, _ in most), frozenset().union(*(held for _, held in most))
        parts = [*(part for part in parts if part not in most), joined]
    return group.ordered(parts[0][0])


def _bounded(group: InnerGroup) -> Allowed:
    """Return whether event times within a set of inputs are bounded there, if they are bounded at all."""
    scans = [(at, scan) for at, part in enumerate(group.parts) for scan in inputs(part)]
    times = {f"{scan.alias}.{scan.table.time}": at for at, scan in scans if scan.table.time}
    order = {name: number for number, name in enumerate(times)}
    every = [bound for c in group.known.rest for bound in time_bounds(c, order)[0]]
    whole = closure(every)

    def allowed(of: frozenset[int]) -> bool:
        within = closure(b for b in every if times[b.left] in of and times[b.right] in of)
        return all(pair in within for pair in whole if times[pair[0]] in of and times[pair[1]] in of)

    return allowed
