"""Decides what inner joins by several keys become: stages in some order, or paths.

    decided by      when
    the asker       a hint or join.strategy says paths, or stages: which paths, and in which order, is decided below
    the checkpoint  it is there: what is stored was stored so
    the text        join.order: text; or nothing is known of the inputs: stages in its order, or paths of inputs alike
    the cost        otherwise: stages in another order, or paths, if they are cheaper by more than estimates are worth

Law: event times that all conditions together bound to each other are bound within each stage that has both of them,
so that its state ends.
"""

from collections.abc import Callable, Sequence

from joinlib.model.order import Shape, StageOrder, leaves
from joinlib.model.pathorder import PathOrder
from joinlib.path.choice import BYTE
from joinlib.plan.considered import ConsideredPlans, as_paths, paths_of
from joinlib.plan.sizes import Inputs, sizes_of
from joinlib.sql.hints import HintWord
from joinlib.sql.order import InnerGroup

WORTH = 0.9  # of the cost of the text's order, or of stages: what is not cheaper than this is no reason to leave it
UNKNOWN = "nothing is known of the inputs, so {}"
KEPT = "the checkpoint was begun with it"
Decide = Callable[[InnerGroup, Inputs, HintWord | None], StageOrder]  # the word: what was asked for


def as_written(group: InnerGroup, given: Inputs, asked: HintWord | None = None) -> StageOrder:
    """Take the order of the text."""
    return _ordered(group, given, asked, StageOrder(group.text, "join.order is text"), BYTE)


def _ordered(
    group: InnerGroup, given: Inputs, asked: HintWord | None, order: StageOrder, byte: float
) -> StageOrder:
    """Return an order that is given, unless paths are asked for, with what is expected of it."""
    sizes = sizes_of(group, given)
    if asked == "paths":
        order = paths_of(group, "the paths are the cheapest", sizes, byte) or order
    return order if sizes is None else ConsideredPlans(group, sizes, byte).told(order)


def remembered(orders: Sequence[Shape | PathOrder], byte: float = BYTE) -> Decide:
    """Return what decides as a checkpoint does; of a group that it does not know, the text's order is its own."""
    known = {frozenset(o.inputs if isinstance(o, PathOrder) else leaves(o)): o for o in orders}

    def decide(group: InnerGroup, given: Inputs, asked: HintWord | None = None) -> StageOrder:
        kept = known.get(frozenset(group.names), group.text)
        sizes = sizes_of(group, given)
        found = None if sizes is None else ConsideredPlans(group, sizes, byte)
        order = _kept(group, kept, asked)
        return order if found is None else found.told(order)

    return decide


def _kept(group: InnerGroup, kept: Shape | PathOrder, asked: HintWord | None) -> StageOrder:
    """Return what a checkpoint has kept, if that is of this group and not of another kind than is asked for now.

    Otherwise it is what no figures decide: the checkpoint is refused then, whatever they are.
    """
    if isinstance(kept, PathOrder):
        if asked != "stages" and kept.fits(group.names, group.known.graph):
            return as_paths(group, kept.plan, KEPT)
        kept = group.text
    if asked == "paths" and (paths := paths_of(group, KEPT)) is not None:
        return paths
    return StageOrder(group.ordered(kept) if group.fits(kept) else group.text, KEPT)


def cheapest(byte: float = BYTE) -> Decide:
    """Return what decides by cost. byte: the seconds that a byte of state is worth."""

    def decide(group: InnerGroup, given: Inputs, asked: HintWord | None = None) -> StageOrder:
        sizes = sizes_of(group, given)
        if sizes is None or asked == "paths":
            unknown = StageOrder(group.text, UNKNOWN.format("it is the order of the text"))
            return _ordered(group, given, asked, unknown, byte)
        found = ConsideredPlans(group, sizes, byte)
        return found.told(_cheapest(found, stages=asked == "stages"))

    return decide


def _cheapest(found: ConsideredPlans, *, stages: bool) -> StageOrder:
    """Return the cheapest stages, or the paths if they are much cheaper. stages: no paths are asked for."""
    text, best = found.price(found.text.work), found.stages
    order, cost = StageOrder(found.group.text, "no other order is much cheaper than the text's"), text
    if best is not None and found.price(best.work) <= WORTH * text:
        order, cost = StageOrder(found.shape(best), "it is the cheapest"), found.price(best.work)
    paths = None if stages else found.paths
    if paths is None or found.price(paths.work) > WORTH * cost:
        return order
    return as_paths(found.group, paths, "they are expected to be cheaper than stages in any order")
