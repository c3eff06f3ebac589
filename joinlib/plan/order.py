"""Decides in which order inner joins by several keys become stages: as cheaply as the sizes of the inputs allow.

    decided by      when
    the checkpoint  it is there: what is stored was stored in its order
    the text        join.order: text; or nothing is known of the inputs
    the cost        otherwise, if it is less than that of the text's order by more than estimates are worth

Law: event times that all conditions together bound to each other are bound within each stage that has both of them,
so that its state ends.
"""

from collections.abc import Callable, Iterator, Sequence

from joinlib.model.order import Alternative, ExpectedPart, Shape, StageOrder, leaves
from joinlib.path.choice import BYTE, Allowed, by_stages, price
from joinlib.path.estimate import ROW_BYTES, Prices, Sizes, StagePlan, inputs_of, staged
from joinlib.plan.reach import closure
from joinlib.plan.sizes import Inputs, sizes_of
from joinlib.sql.bounds import time_bound
from joinlib.sql.graph import inputs
from joinlib.sql.order import InnerGroup

WORTH = 0.9  # of the cost of the text's order: what is not cheaper than this is no reason to leave it
Decide = Callable[[InnerGroup, Inputs], StageOrder]


def as_written(group: InnerGroup, given: Inputs) -> StageOrder:
    """Take the order of the text."""
    return StageOrder(group.text, "join.order is text")


def remembered(orders: Sequence[Shape], byte: float = BYTE) -> Decide:
    """Return what decides as a checkpoint does; of a group that it does not know, the text's order is its own."""
    by_inputs = {frozenset(leaves(shape)): shape for shape in orders}

    def decide(group: InnerGroup, given: Inputs) -> StageOrder:
        shape = by_inputs.get(frozenset(group.names), group.text)
        kept = group.ordered(shape) if group.fits(shape) else group.text
        why = "the checkpoint was begun with it"
        if (sizes := sizes_of(group, given)) is None:
            return StageOrder(kept, why)
        return _told(group, sizes, by_stages(sizes, Prices(), byte, _bounded(group)), kept, why)

    return decide


def cheapest(byte: float = BYTE) -> Decide:
    """Return what decides by cost. byte: the seconds that a byte of state is worth."""

    def decide(group: InnerGroup, given: Inputs) -> StageOrder:
        sizes = sizes_of(group, given)
        if sizes is None:
            return StageOrder(group.text, "nothing is known of the inputs, so it is the order of the text")
        text, best = _plan(group, sizes, group.text), by_stages(sizes, Prices(), byte, _bounded(group))
        if best is None or price(best.work, Prices(), byte) > WORTH * price(text.work, Prices(), byte):
            return _told(group, sizes, best, group.text, "no other order is much cheaper than the text's")
        return _told(group, sizes, best, _shape(group, best), "it is the cheapest")

    return decide


def _told(group: InnerGroup, sizes: Sizes, best: StagePlan | None, shape: Shape, why: str) -> StageOrder:
    """Return an order with what is expected of it, and of others."""
    parts = tuple(_parts(group, sizes, shape))
    return StageOrder(shape, why, parts, tuple(_alternatives(group, sizes, best)))


def _alternatives(group: InnerGroup, sizes: Sizes, best: StagePlan | None) -> Iterator[Alternative]:
    """Yield the plans that were considered; further kinds of plans are told here, too."""
    if best is not None:
        yield _alternative("cheapest stages", group, best)
    yield _alternative("order of the text", group, _plan(group, sizes, group.text))
    yield _alternative("as many inputs as one key has", group, _plan(group, sizes, _by_large_keys(group)))


def _by_large_keys(group: InnerGroup) -> Shape:
    """Join by the key that most parts have, again and again."""
    graph = group.known.graph
    parts: list[tuple[Shape, frozenset[int]]] = [(n, graph.of(at)) for at, n in enumerate(group.names)]
    while len(parts) > 1:
        met = [[part for part in parts if number in part[1]] for number in range(len(graph.classes))]
        most = max(met, key=len)
        joined = tuple(shape for shape, _ in most), frozenset().union(*(held for _, held in most))
        parts = [*(part for part in parts if part not in most), joined]
    return group.ordered(parts[0][0])


def _alternative(name: str, group: InnerGroup, plan: StagePlan) -> Alternative:
    work = plan.work
    return Alternative(name, _shape(group, plan), work.seconds(Prices()), work.bytes, work.levels)


def _plan(group: InnerGroup, sizes: Sizes, shape: Shape) -> StagePlan:
    parts = [
        group.names.index(part) if isinstance(part, str) else _plan(group, sizes, part) for part in shape
    ]
    return staged(sizes, parts)


def _shape(group: InnerGroup, plan: StagePlan | int) -> Shape:
    if isinstance(plan, int):
        return group.names[plan]
    return group.ordered(tuple(_shape(group, part) for part in plan.parts))


def _parts(group: InnerGroup, sizes: Sizes, shape: Shape) -> Iterator[ExpectedPart]:
    """Yield what the stages of a shape store, those of earlier stages first."""
    for part in () if isinstance(shape, str) else shape:
        yield from _parts(group, sizes, part)
        of = inputs_of(_plan(group, sizes, part)) if not isinstance(part, str) else [group.names.index(part)]
        rows = sizes.tuples(of)
        yield ExpectedPart(part, rows, rows * (sizes.width(of) + ROW_BYTES))


def _bounded(group: InnerGroup) -> Allowed:
    """Return whether event times within a set of inputs are bounded there, if they are bounded at all."""
    scans = [(at, scan) for at, part in enumerate(group.parts) for scan in inputs(part)]
    times = {f"{scan.alias}.{scan.table.time}": at for at, scan in scans if scan.table.time}
    order = {name: number for number, name in enumerate(times)}
    every = [bound for c in group.known.rest if (bound := time_bound(c, order)) is not None]
    whole = closure(every)

    def allowed(of: frozenset[int]) -> bool:
        within = closure(b for b in every if times[b.left] in of and times[b.right] in of)
        return all(pair in within for pair in whole if times[pair[0]] in of and times[pair[1]] in of)

    return allowed
